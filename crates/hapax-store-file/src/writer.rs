//! The one thread that writes. It takes what waits, does all of it in one transaction, and answers after the
//! commit: many callers share one sync of the disk, and a lone caller waits for nobody.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use hapax_core::transition::{self, Answer, Change, Command};
use hapax_core::{Claim, RecordId, State, StoreError, StoreErrorKind, Swept, Timestamp};
use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::oneshot;

use crate::clock::{Mark, StoreClock};
use crate::error::{Failure, Phase, Refusal};
use crate::index::{self, Index, Recent};
use crate::log::{Log, SyncFailed};
use crate::queue::Queue;
use crate::row::{self, Row, Stored};
use crate::{schema, sweep};

/// How many operations share a commit at most. More would not make the sync cheaper per operation by much, and
/// the first of them would wait longer.
const BATCH_MAX: usize = 1_024;

/// How often others are let run before a commit, as long as that brings more to do. A commit costs about as much for
/// few operations as for many; where all cores are busy, whoever is about to ask has to get one first.
const TURNS_MAX: usize = 8;

/// How many claims are kept at hand.
const CLAIMS_MAX: usize = 65_536;

/// Claims in progress as they are stored, so that finishing one need not read it back. This thread alone writes, so
/// they are what a look would find; they are forgotten whenever a transaction fails.
type Claims = HashMap<RecordId, Box<Row>>;

/// Where an answer goes. Nobody need be there any more.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// Something to write.
#[derive(Debug)]
pub(crate) enum Job {
    /// One step of the state machine.
    Step(Step),
    /// Remove what is due.
    Sweep { batch_max: usize, reply: Reply<Swept> },
}

/// One step of the state machine and who waits for it.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) command: Command,
    pub(crate) reply: Reply<Answer>,
}

impl Job {
    fn refuse(self, refusal: Refusal) {
        match self {
            Self::Step(step) => {
                let op = op(&step.command);
                step.answer(Err(refusal.error(op)));
            }
            Self::Sweep { reply, .. } => send(reply, Err(refusal.error("sweep"))),
        }
    }
}

impl Step {
    fn answer(self, answer: Result<Answer, StoreError>) {
        send(self.reply, answer);
    }
}

/// What came of one step.
pub(crate) type Done = Result<Answer, Refusal>;

/// A step that was done, and what is to be told about it once it is durable.
#[derive(Debug)]
pub(crate) struct Answered {
    step: Step,
    answer: Done,
}

/// What is served together.
#[derive(Debug, Default)]
struct Batch {
    steps: Vec<Step>,
    sweeps: Vec<(usize, Reply<Swept>)>,
}

impl Batch {
    fn add(&mut self, jobs: Vec<Job>) {
        for job in jobs {
            match job {
                Job::Step(step) => self.steps.push(step),
                Job::Sweep { batch_max, reply } => self.sweeps.push((batch_max, reply)),
            }
        }
    }
}

impl Answered {
    pub(crate) fn new(step: Step, answer: Done) -> Self {
        Self { step, answer }
    }

    pub(crate) fn tell(self) {
        let op = op(&self.step.command);
        self.step.answer(self.answer.map_err(|refusal| refusal.error(op)));
    }

    /// Whether it is durable, nobody can say.
    pub(crate) fn fail(self, failure: &Failure) {
        let error = failure.error(op(&self.step.command));
        self.step.answer(Err(error));
    }
}

/// A caller that gave up is not there to hear the answer.
fn send<T>(reply: Reply<T>, answer: Result<T, StoreError>) {
    let _ = reply.send(answer);
}

/// What the threads of a store and its handle share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// Set once and for ever when the store must not be used any more.
    pub(crate) stopped: AtomicBool,
    pub(crate) operations: AtomicU64,
    pub(crate) commits: AtomicU64,
}

impl Shared {
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }
}

/// The writing thread's own things.
#[derive(Debug)]
pub(crate) struct Writer {
    connection: Connection,
    clock: StoreClock,
    mark: Mark,
    shared: Arc<Shared>,
    queue: Arc<Queue<Job>>,
    log: Log,
    /// Whether the log was shortened for what is being served, because there was no room.
    shortened: bool,
    claims: Claims,
    index: Index,
}

impl Writer {
    pub(crate) fn new(
        connection: Connection,
        clock: StoreClock,
        shared: Arc<Shared>,
        queue: Arc<Queue<Job>>,
        log: Log,
        index: Index,
    ) -> rusqlite::Result<Self> {
        let mark = Mark::read(&connection)?;
        Ok(Self {
            connection,
            clock,
            mark,
            shared,
            queue,
            log,
            shortened: false,
            claims: Claims::new(),
            index,
        })
    }

    /// What the index in the database lacks.
    pub(crate) fn recent(&self) -> &Arc<Recent> {
        self.index.recent()
    }

    /// Writes down that the claims of an earlier process are uncertain: whoever could own one is gone. What it had
    /// not put into the index is put there.
    pub(crate) fn restart(&mut self) -> Result<usize, Failure> {
        match self.restart_claims() {
            Err(failure) if failure.judge().kind == StoreErrorKind::Full => {
                // What is due may go, and leaves its place in the file to the others.
                self.transact_durably(|work| sweep::remove_due(work, usize::MAX))?;
                self.shorten_log();
                self.restart_claims()
            }
            done => done,
        }
    }

    fn restart_claims(&mut self) -> Result<usize, Failure> {
        self.transact_durably(|work| {
            let mut restarted = 0;
            work.wrote |= index::place_all(work.connection)?;
            for rowid in sweep::in_progress(work.connection)? {
                if let Stored::Found(row) = row::at(work.connection, rowid)? {
                    let change = transition::restart(&row.record, work.now);
                    restarted += usize::from(work.apply(Some(row), change)?);
                }
            }
            Ok(restarted)
        })
    }

    /// Refuses to let the database grow beyond `size_max` bytes from now on.
    pub(crate) fn limit_size(&self, size_max: u64) -> rusqlite::Result<()> {
        schema::limit_size(&self.connection, size_max)
    }

    /// Serves until the queue is closed and empty, or the store must stop.
    pub(crate) fn run(mut self) {
        let _guard = StopGuard { shared: Arc::clone(&self.shared), queue: Arc::clone(&self.queue) };
        while let Some(jobs) = self.queue.take(BATCH_MAX) {
            self.serve(jobs);
        }
        self.close();
    }

    fn serve(&mut self, jobs: Vec<Job>) {
        self.shortened = false;
        let mut batch = Batch::default();
        batch.add(jobs);
        if !batch.steps.is_empty() {
            self.serve_batch(&mut batch);
        }
        // A sweep is a transaction of its own: it may take as long as many steps together.
        for (batch_max, reply) in batch.sweeps {
            let swept =
                self.attempt(|writer| writer.transact_durably(|work| sweep::remove_due(work, batch_max)));
            send(reply, swept.map_err(|stop| stop.error("sweep")));
        }
    }

    /// Serves the steps of a batch. While the disk is busy with the commit before, others may come: they join. So do
    /// those who come as soon as they get a core.
    fn serve_batch(&mut self, batch: &mut Batch) {
        let (queue, disk) = (Arc::clone(&self.queue), self.log.disk());
        let mut steps_done = false;
        let done = self.attempt(|writer| {
            writer.transact(|work| {
                let mut answers = work.steps(&batch.steps, Room::Untried)?;
                if disk.is_busy() {
                    // That it failed is told when this transaction ends.
                    let _failed = disk.settle();
                }
                // Whoever has only looked need not wait for what others write.
                let turns = if work.wrote { TURNS_MAX } else { 0 };
                for _ in 0..turns {
                    thread::yield_now();
                    batch.add(queue.take_now(BATCH_MAX.saturating_sub(batch.steps.len())));
                    if batch.steps.len() == answers.len() {
                        break;
                    }
                    answers.extend(work.steps(&batch.steps[answers.len()..], Room::Untried)?);
                }
                steps_done = true;
                work.place()?;
                Ok(answers)
            })
        });
        let steps = std::mem::take(&mut batch.steps);
        match done {
            // It was not them. What waits for an index that cannot be written must not keep them from being done.
            Err(Stop::Failed(failure))
                if steps_done
                    && failure.judge().separable
                    && failure.judge().kind != StoreErrorKind::Full =>
            {
                tracing::warn!(error = %failure, "file store cannot write to its index; look for damage");
                self.serve_steps(steps, Room::Untried);
            }
            done => self.conclude(steps, done, Room::Untried),
        }
    }

    fn serve_steps(&mut self, steps: Vec<Step>, room: Room) {
        let done = self.attempt(|writer| writer.transact(|work| work.steps(&steps, room)));
        self.conclude(steps, done, room);
    }

    /// Answers steps that were done; tries in parts again what could not be done together.
    fn conclude(&mut self, mut steps: Vec<Step>, done: Result<(Vec<Done>, Committed), Stop>, room: Room) {
        match done {
            Ok((answers, committed)) => {
                self.shared.operations.fetch_add(steps.len() as u64, Ordering::Relaxed);
                let answered = steps.into_iter().zip(answers);
                let answered = answered.map(|(step, answer)| Answered::new(step, answer)).collect();
                self.deliver(answered, committed);
            }
            // Without new records, and without entries for the index, there may be room.
            Err(Stop::Failed(failure))
                if failure.judge().kind == StoreErrorKind::Full
                    && failure.judge().separable
                    && room == Room::Untried =>
            {
                self.serve_steps(steps, Room::Missing);
            }
            // One of them cannot be done. Without it the others can.
            Err(Stop::Failed(failure)) if steps.len() > 1 && failure.judge().separable => {
                let later = steps.split_off(steps.len() / 2);
                self.serve_steps(steps, room);
                self.serve_steps(later, room);
            }
            Err(stop) => {
                for step in steps {
                    let error = stop.error(op(&step.command));
                    step.answer(Err(error));
                }
            }
        }
    }

    /// Answers what is durable. Where others wait, the disk works while they are served.
    fn deliver(&mut self, answered: Vec<Answered>, committed: Committed) {
        match committed {
            Committed::Nothing => answered.into_iter().for_each(Answered::tell),
            Committed::Yes if !self.queue.is_empty() => self.log.bring_behind(answered),
            Committed::Yes => match self.log.bring() {
                Ok(()) => answered.into_iter().for_each(Answered::tell),
                Err(failure) => {
                    self.bear(&failure);
                    answered.into_iter().for_each(|answered| answered.fail(&failure));
                }
            },
        }
    }

    /// Does something with the database, unless the store has stopped.
    fn attempt<T>(&mut self, act: impl FnOnce(&mut Self) -> Result<T, Failure>) -> Result<T, Stop> {
        if self.shared.is_stopped() {
            return Err(Stop::Earlier);
        }
        act(self).map_err(|failure| {
            self.bear(&failure);
            Stop::Failed(failure)
        })
    }

    /// Stops the store after a failure when nobody can say what a later transaction would mean.
    fn bear(&mut self, failure: &Failure) {
        // Some of them may just have been rolled back.
        self.claims.clear();
        let judgement = failure.judge();
        let rolled_back = self.connection.is_autocommit();
        if judgement.fatal || !rolled_back {
            tracing::error!(error = %failure, "file store stopped; it must be opened again");
            stop(&self.shared, &self.queue);
        } else if judgement.kind == StoreErrorKind::Full && !self.shortened {
            self.shortened = true;
            self.shorten_log();
        }
    }

    /// A log that starts again has room even where the disk has none: a sweep may need it.
    fn shorten_log(&self) {
        if let Err(error) = schema::shorten_log(&self.connection) {
            tracing::debug!(%error, "file store is full and its log cannot be shortened");
        }
    }

    /// One transaction around `work`, durable when this returns.
    fn transact_durably<T>(
        &mut self,
        work: impl FnOnce(&mut Work<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, Failure> {
        let (value, committed) = self.transact(work)?;
        if committed == Committed::Yes {
            self.log.bring()?;
        }
        Ok(value)
    }

    /// One transaction around `work`, which is not durable yet when this returns. A failure leaves nothing of it
    /// behind, except that nobody knows about one that came while committing.
    fn transact<T>(
        &mut self,
        work: impl FnOnce(&mut Work<'_>) -> rusqlite::Result<T>,
    ) -> Result<(T, Committed), Failure> {
        let done = self.commit(work);
        match done {
            Ok(_) => self.index.keep(),
            Err(_) => self.index.undo(),
        }
        done
    }

    fn commit<T>(
        &mut self,
        work: impl FnOnce(&mut Work<'_>) -> rusqlite::Result<T>,
    ) -> Result<(T, Committed), Failure> {
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(Failure::at(Phase::Begin))?;
        let (claims, index) = (&mut self.claims, &mut self.index);
        let mut batch = Work { connection: &transaction, now: self.clock.now(), wrote: false, claims, index };
        let value = work(&mut batch).map_err(Failure::at(Phase::Work))?;
        let Work { now, wrote, .. } = batch;
        if !wrote {
            // The end of a transaction without changes does not touch the disk.
            transaction.finish().map_err(Failure::at(Phase::Work))?;
            // What was read may have been written by the commit before, which may still be on its way.
            self.log.disk().settle().map_err(|SyncFailed| Failure::of_earlier_sync())?;
            return Ok((value, Committed::Nothing));
        }
        let mark = self.mark.cover(&transaction, now).map_err(Failure::at(Phase::Work))?;
        self.log.begin().map_err(|SyncFailed| Failure::of_earlier_sync())?;
        if let Err(error) = transaction.commit() {
            self.log.forget();
            return Err(Failure::at(Phase::Commit)(error));
        }
        self.mark = mark;
        self.shared.commits.fetch_add(1, Ordering::Relaxed);
        Ok((value, Committed::Yes))
    }

    /// An orderly end. The last connection to close moves the log into the database by itself.
    fn close(self) {
        if self.log.disk().settle().is_err() || self.shared.is_stopped() {
            return;
        }
        if let Err(error) = index::place_all(&self.connection) {
            tracing::warn!(%error, "file store closed without completing its index; the next start does that");
        }
        if let Err(error) = self.mark.settle(&self.connection, self.clock.now()) {
            tracing::warn!(%error, "file store closed without noting the time; its clock may start a second ahead");
        }
    }
}

/// Whether a transaction changed anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Committed {
    /// It did, and its commit is to be brought to the disk.
    Yes,
    /// It did not.
    Nothing,
}

/// What is known about the room for new records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Room {
    /// Nothing.
    Untried,
    /// A moment ago there was none for all of a batch. Its new records are refused together: to find out which
    /// of them fits would take a transaction for each.
    Missing,
}

/// One transaction at work.
#[derive(Debug)]
pub(crate) struct Work<'a> {
    pub(crate) connection: &'a Connection,
    /// The time of every decision in it.
    pub(crate) now: Timestamp,
    wrote: bool,
    claims: &'a mut Claims,
    index: &'a mut Index,
}

impl Work<'_> {
    fn steps(&mut self, steps: &[Step], room: Room) -> rusqlite::Result<Vec<Done>> {
        steps.iter().map(|step| self.step(&step.command, room)).collect()
    }

    /// Decides one command and writes what was decided. The inner error is about this command alone.
    fn step(&mut self, command: &Command, room: Room) -> rusqlite::Result<Done> {
        let stored = match self.claims.remove(command.id()) {
            Some(row) => Stored::Found(row),
            None => {
                let recent = self.index.recent().rows_of(&row::hash_of(command.id()));
                row::find(self.connection, Some(recent), command.id())?
            }
        };
        let row = match stored {
            Stored::Absent => None,
            Stored::Found(row) => Some(row),
            // Present: no claim may pass, and no write can tell whether the record still holds its attempt.
            Stored::Unreadable(_) => {
                return Ok(match command {
                    Command::Claim(_) => Ok(Answer::Claim(Claim::Unreadable)),
                    _ => Err(Refusal::Unreadable),
                });
            }
        };
        let decision = transition::decide(row.as_deref().map(|row| &row.record), command, self.now);
        if room == Room::Missing && row.is_none() && matches!(decision.change, Change::Put(_)) {
            return Ok(Err(Refusal::NoRoom));
        }
        self.apply(row, decision.change)?;
        Ok(Ok(decision.answer))
    }

    /// Writes a change down; whether there was one.
    pub(crate) fn apply(&mut self, row: Option<Box<Row>>, change: Change) -> rusqlite::Result<bool> {
        let (place, record) = match (change, row) {
            (Change::Keep | Change::Remove, None) => return Ok(false),
            (Change::Keep, Some(row)) => {
                self.remember(row);
                return Ok(false);
            }
            (Change::Put(record), None) => (row::insert(self.connection, self.index, &record)?, record),
            (Change::Put(record), Some(row)) => {
                (row::replace(self.connection, self.index, &row, &record)?, record)
            }
            (Change::Remove, Some(row)) => return self.remove(&row).map(|()| true),
        };
        self.remember(Box::new(Row { place, record: *record }));
        self.wrote = true;
        Ok(true)
    }

    /// Keeps a claim at hand. Other records are rarely asked for again by somebody who writes.
    fn remember(&mut self, row: Box<Row>) {
        if row.record.state() == State::InProgress && self.claims.len() < CLAIMS_MAX {
            self.claims.insert(row.record.key.id, row);
        }
    }

    pub(crate) fn remove(&mut self, row: &Row) -> rusqlite::Result<()> {
        self.wrote = true;
        // One of them may be what is removed.
        self.claims.clear();
        row::remove(self.connection, self.index, row)
    }

    /// Lets the index have what waits for it, if the transaction writes anyway.
    fn place(&mut self) -> rusqlite::Result<()> {
        if self.wrote { self.index.place(self.connection) } else { Ok(()) }
    }
}

/// Why a transaction gave no answers.
#[derive(Debug)]
enum Stop {
    /// The store had stopped before.
    Earlier,
    /// It failed.
    Failed(Failure),
}

impl Stop {
    fn error(&self, op: &'static str) -> StoreError {
        match self {
            Self::Earlier => Refusal::Stopped.error(op),
            Self::Failed(failure) => failure.error(op),
        }
    }
}

/// Ends the store also when its thread ends by a panic: nobody may wait for an answer that will not come.
#[derive(Debug)]
struct StopGuard {
    shared: Arc<Shared>,
    queue: Arc<Queue<Job>>,
}

impl Drop for StopGuard {
    fn drop(&mut self) {
        stop(&self.shared, &self.queue);
    }
}

pub(crate) fn stop(shared: &Shared, queue: &Queue<Job>) {
    shared.stopped.store(true, Ordering::Release);
    queue.abort().into_iter().for_each(|job| job.refuse(Refusal::Stopped));
}

/// The name of a command in errors.
pub(crate) const fn op(command: &Command) -> &'static str {
    match command {
        Command::Claim(_) => "claim",
        Command::Renew(_) => "renew",
        Command::Complete { .. } => "complete",
        Command::Release { .. } => "release",
        Command::Abandon { .. } => "abandon",
        Command::Settle { .. } => "settle",
        Command::Delete { .. } => "delete",
    }
}

#[cfg(test)]
mod tests;
