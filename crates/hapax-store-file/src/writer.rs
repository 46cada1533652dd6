//! The one thread that writes. It takes what waits, decides all of it, brings what was decided to the journal, answers,
//! and then writes it to the database: many callers share one sync of the disk, a lone caller waits for nobody, and
//! nobody waits for the database.
//!
//! The transaction in the database stays open for many batches. It is committed when nobody asks for a moment, when it
//! is old or long enough, and when somebody else wants to read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hapax_core::transition::Answer;
use hapax_core::{Deleted, Deletions, StoreError, StoreErrorKind, Swept, Timestamp};
use rusqlite::Connection;

use self::commit::Entries;
use crate::clock::StoreClock;
use crate::config::Commits;
use crate::error::{Failure, Phase, Refusal};
use crate::job::{Batch, Job, Step, op, send};
use crate::journal::{Journal, ReadError};
use crate::log::Log;
use crate::memtable::{AHEAD_BYTES_MAX, Memtable, Records};
use crate::meta::Meta;
use crate::ownership::Footing;
use crate::queue::{Queue, Taken};
use crate::row::{self, Prepared, Stored};
use crate::work::{Room, Work, unreadable};
use crate::{schema, sweep};

/// How many operations share a sync at most. More would not make the sync cheaper per operation by much, and
/// the first of them would wait longer.
const BATCH_MAX: usize = 1_024;

/// How long the store must be idle before what waits is committed.
const IDLE: Duration = Duration::from_millis(10);
/// How long a transaction stays open at most: as long as another process may have to wait for what it reads.
const OPEN_MAX: Duration = Duration::from_millis(50);
/// How long a commit that failed is not tried again, if nothing else happens.
const RETRY: Duration = Duration::from_secs(1);

/// How much room the database must have at least for each byte of the journal, and in all: rows have indexes, and pages
/// are never full.
const ROOM_FACTOR: u64 = 4;
const ROOM_MIN: u64 = 256 << 10;

/// How often the database's own lock is asked for when there is no going back; each time takes as long as the engine
/// waits.
const LOCK_TRIES: usize = 12;

/// What the threads of a store and its handle share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// Set once and for ever when the store must not be used any more.
    pub(crate) stopped: AtomicBool,
    /// Set before that where files of the store were removed or replaced.
    replaced: AtomicBool,
    /// Whether something was answered that only the writer's own connection sees.
    uncommitted: AtomicBool,
    pub(crate) operations: AtomicU64,
    pub(crate) commits: AtomicU64,
    pub(crate) deletions: Arc<Deletions>,
}

impl Shared {
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Why a store that has stopped refuses.
    pub(crate) fn refusal(&self) -> Refusal {
        if self.replaced.load(Ordering::Acquire) { Refusal::Replaced } else { Refusal::Stopped }
    }

    pub(crate) fn is_uncommitted(&self) -> bool {
        self.uncommitted.load(Ordering::Acquire)
    }
}

/// The writing thread's own things.
#[derive(Debug)]
pub(crate) struct Writer {
    connection: Connection,
    clock: StoreClock,
    /// What the database says of the store, as of the last commit.
    meta: Meta,
    /// The files as they were opened.
    pub(crate) footing: Footing,
    /// The time of the latest decision.
    latest: Timestamp,
    shared: Arc<Shared>,
    queue: Arc<Queue<Job>>,
    journal: Journal,
    log: Log,
    /// How many operations were served together last, and how long as many are waited for.
    served: usize,
    pub(crate) gather: Duration,
    pub(crate) commits: Commits,
    /// Since when a transaction is open, if one is.
    open: Option<Instant>,
    /// Whether the log was shortened for what is being served, because there was no room.
    shortened: bool,
    /// Bytes by which the database may still grow, as of the last commit; none where it has no limit.
    room: Option<u64>,
    size_max: u64,
    /// When a commit failed, if the last one did.
    failed: Option<Instant>,
    /// Whether what is being served was tried again after the engine met damage.
    tried_again: bool,
    memtable: Memtable,
}

impl Writer {
    pub(crate) fn new(
        connection: Connection,
        clock: StoreClock,
        shared: Arc<Shared>,
        queue: Arc<Queue<Job>>,
        journal: Journal,
        log: Log,
        meta: Meta,
    ) -> Self {
        Self {
            connection,
            clock,
            meta,
            footing: Footing::default(),
            latest: Timestamp::from_millis(0),
            shared,
            queue,
            journal,
            log,
            served: 0,
            gather: Duration::ZERO,
            commits: Commits::default(),
            open: None,
            shortened: false,
            room: None,
            size_max: u64::MAX,
            failed: None,
            tried_again: false,
            memtable: Memtable::new(&meta),
        }
    }

    /// The memtable, for setting the store up.
    pub(crate) fn memtable(&mut self) -> &mut Memtable {
        &mut self.memtable
    }

    /// Takes over what an earlier process left in the journal, and writes down that its claims are uncertain: whoever
    /// could own one is gone. What it had not put into the index is put there.
    pub(crate) fn restart(&mut self) -> Result<usize, Failure> {
        match self.restart_claims() {
            Err(failure) if failure.judge().kind == StoreErrorKind::Full => {
                // What is due may go, and leaves its place in the file to the others.
                self.roll_back()?;
                self.work(Noted::Nowhere, self.clock.now(), |work| Ok(sweep::remove_due(work, usize::MAX)?))?;
                self.end_durably(|_| ())?;
                self.shorten_log();
                self.restart_claims()
            }
            done => done,
        }
    }

    fn restart_claims(&mut self) -> Result<usize, Failure> {
        let mut journal = self.journal.all_frames().map_err(|error| unreadable(ReadError::Io(error)))?;
        let restarted = self.work(Noted::Nowhere, self.clock.now(), |work| {
            let mut restarted = 0;
            work.memtable.flush_left_by_crash(work.prepared.connection)?;
            work.replay(&mut journal)?;
            for rowid in sweep::in_progress(work.prepared.connection)? {
                if let Stored::Found(row) = row::at(work.prepared.connection, rowid)? {
                    restarted += usize::from(sweep::restart(work, row)?);
                }
            }
            Ok(restarted)
        })?;
        // Also where there was nothing to do: the engine makes its log with the first commit, and the journal begins a
        // generation that nobody has written before.
        self.end_generation()?;
        Ok(restarted)
    }

    /// Refuses to let the database grow beyond `size_max` bytes from now on.
    pub(crate) fn limit_size(&mut self, size_max: u64) -> rusqlite::Result<()> {
        self.size_max = size_max;
        schema::limit_size(&self.connection, size_max)?;
        self.room = Some(schema::room(&self.connection)?);
        Ok(())
    }

    /// Serves until the queue is closed and empty, or the store must stop.
    pub(crate) fn run(mut self) {
        let _guard = StopGuard { shared: Arc::clone(&self.shared), queue: Arc::clone(&self.queue) };
        while let Some(jobs) = self.next_jobs() {
            self.serve(jobs);
        }
        self.close();
    }

    /// Waits for work; commits what nobody has asked more of for a moment.
    fn next_jobs(&mut self) -> Option<Vec<Job>> {
        if self.commits == Commits::OnDemand {
            return self.queue.take(BATCH_MAX);
        }
        let mut wait = IDLE;
        if let Some(count) = self.awaited() {
            self.queue.gather(count, Instant::now() + self.gather);
        }
        while self.open.is_some() {
            match self.queue.take_until(BATCH_MAX, Instant::now() + wait) {
                Taken::Jobs(jobs) => return Some(jobs),
                Taken::Closed => return None,
                // That it failed was said, and is tried again.
                Taken::Nothing => drop(self.commit()),
            }
            wait = RETRY;
        }
        self.queue.take(BATCH_MAX)
    }

    /// How many operations are worth waiting for: those who were answered together may soon ask together again. A lone
    /// caller waits for nobody.
    fn awaited(&self) -> Option<usize> {
        Some(self.served).filter(|served| *served > 1 && !self.gather.is_zero())
    }

    fn serve(&mut self, jobs: Vec<Job>) {
        (self.shortened, self.tried_again) = (false, false);
        let batch = Batch::of(jobs);
        self.served = batch.steps.len();
        if !batch.steps.is_empty() {
            self.serve_steps(batch.steps, Room::Untried);
        }
        if !batch.reads.is_empty() {
            // That it failed was said, and what was acknowledged is there all the same.
            let _ = self.attempt(|writer| writer.write_records(Records::All));
        }
        if !self.shared.is_stopped() {
            batch.reads.into_iter().for_each(|read| read.run(&self.connection));
        }
        for (batch_max, reply) in batch.sweeps {
            // Nothing else should fail with it. Where there is no room for a commit, the sweep may make some.
            let _ = self.commit();
            let swept = self.attempt(|writer| writer.sweep(batch_max));
            send(reply, swept.map_err(|stop| stop.error("sweep")));
        }
        for reply in batch.commits {
            send(reply, self.commit().map_err(|stop| stop.error("commit")));
        }
        let is_old =
            self.commits == Commits::Timed && self.open.is_some_and(|since| since.elapsed() >= OPEN_MAX);
        let may_try = self.failed.is_none_or(|at| at.elapsed() >= RETRY);
        if (is_old || self.journal.is_long()) && may_try {
            // That it failed was said, and is tried again.
            let _ = self.commit();
        }
    }

    /// Does steps together, and answers them; tries in parts again what could not be done together.
    fn serve_steps(&mut self, mut steps: Vec<Step>, room: Room) {
        match self
            .attempt(|writer| writer.decide(|work| work.steps(steps.iter().map(|step| &step.command), room)))
        {
            Ok(answers) => {
                self.shared.operations.fetch_add(steps.len() as u64, Ordering::Relaxed);
                for (step, answer) in steps.into_iter().zip(answers) {
                    let op = op(&step.command);
                    if matches!(&answer, Ok(Answer::Deleted(Deleted::Applied))) {
                        self.shared.deletions.count(step.command.id());
                    }
                    step.answer(answer.map_err(|refusal| refusal.error(op)));
                }
                if self.memtable.has_many_ended() {
                    // That it failed was said. What was answered is in the journal.
                    let _ = self.attempt(|writer| writer.write_records(Records::Ended));
                }
            }
            // With a journal that starts again, and without new records, there may be room.
            Err(Stop::Failed(failure))
                if failure.judge().kind == StoreErrorKind::Full && room == Room::Untried =>
            {
                // Where even that has no room, the steps will say so.
                let _ = self.commit();
                self.serve_steps(steps, Room::Missing);
            }
            // Somebody had looked at a damaged page in the same transaction: the engine writes nothing in it then.
            Err(Stop::Failed(failure))
                if failure.judge().kind == StoreErrorKind::Incompatible && !self.tried_again =>
            {
                self.tried_again = true;
                self.serve_steps(steps, room);
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

    /// Does something with the database, unless the store has stopped. A failure leaves nothing of it behind.
    fn attempt<T>(&mut self, act: impl FnOnce(&mut Self) -> Result<T, Failure>) -> Result<T, Stop> {
        if self.shared.is_stopped() {
            return Err(Stop::Earlier(self.shared.refusal()));
        }
        act(self).map_err(|failure| {
            // Nothing of it may come back after a crash, unless its callers are told that it may.
            let failure = match self.journal.forget() {
                Err(unforgotten) if failure.judge().kind != StoreErrorKind::Unknown => unforgotten,
                _ => failure,
            };
            self.bear(&failure);
            Stop::Failed(failure)
        })
    }

    /// Takes back what failed, or stops the store when nobody can say what a later transaction would mean.
    fn bear(&mut self, failure: &Failure) {
        let judgement = failure.judge();
        if judgement.fatal {
            tracing::error!(error = %failure, "file store stopped; it must be opened again");
            return stop(&self.shared, &self.queue);
        }
        let undone = self.roll_back().and_then(|()| {
            if judgement.kind == StoreErrorKind::Full && !self.shortened {
                self.shortened = true;
                self.shorten_log();
            }
            self.take_up()
        });
        if let Err(error) = undone {
            tracing::error!(%failure, %error, "file store stopped after a failure; it must be opened again");
            stop(&self.shared, &self.queue);
        }
    }

    /// A log that starts again has room even where the disk has none: a sweep may need it.
    fn shorten_log(&self) {
        if let Err(error) = schema::shorten_log(&self.connection) {
            tracing::debug!(%error, "file store is full and its log cannot be shortened");
        }
    }

    /// Ends the open transaction as if it had never been.
    fn roll_back(&mut self) -> Result<(), Failure> {
        self.memtable.roll_back();
        self.open = None;
        // After some failures the engine has done it by itself.
        if self.connection.is_autocommit() {
            Ok(())
        } else {
            Ok(self.connection.execute_batch("ROLLBACK")?)
        }
    }

    /// Puts back into the database what was acknowledged since the last commit, and nothing else.
    fn take_up(&mut self) -> Result<(), Failure> {
        if self.journal.length() == 0 {
            self.shared.uncommitted.store(false, Ordering::Release);
            return Ok(());
        }
        // It has fitted once, and there is nowhere else for it to go.
        schema::limit_size(&self.connection, u64::MAX)?;
        let mut frames = self.journal.frames().map_err(|error| unreadable(ReadError::Io(error)))?;
        self.wait_for_lock()?;
        self.work(Noted::Nowhere, self.latest, |work| work.replay(&mut frames))?;
        schema::limit_size(&self.connection, self.size_max)?;
        if frames.read_length() == self.journal.length() {
            Ok(())
        } else {
            Err(unreadable(ReadError::Damaged("the journal is cut short".to_owned())))
        }
    }

    /// Begins a transaction although somebody else may have taken the lock, as a person with a shell who waited for it.
    fn wait_for_lock(&mut self) -> Result<(), Failure> {
        let mut tries = 0;
        loop {
            match self.work(Noted::Nowhere, self.latest, |_| Ok(())) {
                Err(failure) if !failure.judge().fatal && tries < LOCK_TRIES => tries += 1,
                done => return done,
            }
        }
    }

    /// Decides what `work` asks for, durable when this returns. It may be in the journal only.
    fn decide<T>(&mut self, work: impl FnOnce(&mut Work<'_>) -> Result<T, Failure>) -> Result<T, Failure> {
        let was_open = self.open.is_some();
        let (value, wrote) =
            self.work(Noted::InJournal, self.clock.now(), |batch| Ok((work(batch)?, batch.wrote)))?;
        if wrote {
            if !self.may_go_ahead() {
                // It has to fit before anybody is told.
                self.write_records(Records::All)?;
            }
            self.check_footing()?;
            self.journal.bring()?;
            self.shared.uncommitted.store(true, Ordering::Release);
            self.shared.commits.fetch_add(1, Ordering::Relaxed);
        } else if !was_open {
            // The end of a transaction without changes does not touch the disk.
            self.end_unchanged()?;
        }
        Ok(value)
    }

    /// Fails where what is written does not reach the files that the next process will find.
    fn check_footing(&self) -> Result<(), Failure> {
        match self.footing.lost() {
            None => Ok(()),
            Some(path) => {
                self.shared.replaced.store(true, Ordering::Release);
                Err(Failure::lost(path))
            }
        }
    }

    /// Writes records that are in the memtable to the database.
    fn write_records(&mut self, records: Records) -> Result<(), Failure> {
        if !self.memtable.has_unwritten() {
            return Ok(());
        }
        self.work(Noted::Nowhere, self.latest, |work| work.write_records(records))
    }

    /// Whether what was decided is sure to find room in the database.
    fn may_go_ahead(&self) -> bool {
        let ahead = self.journal.batch_length();
        let needed = ROOM_MIN + ROOM_FACTOR * (self.journal.length() + ahead);
        ahead <= AHEAD_BYTES_MAX && self.room.is_none_or(|room| room >= needed)
    }

    fn end_unchanged(&mut self) -> Result<(), Failure> {
        self.open = None;
        Ok(self.connection.execute_batch("ROLLBACK")?)
    }

    fn sweep(&mut self, batch_max: usize) -> Result<Swept, Failure> {
        let was_open = self.open.is_some();
        let (swept, wrote) = self.work(Noted::Nowhere, self.clock.now(), |work| {
            Ok((sweep::remove_due(work, batch_max)?, work.wrote))
        })?;
        if wrote {
            // What is swept is in no journal, so it counts only once it is committed.
            self.commit_with(Entries::Waiting)?;
            self.shared.commits.fetch_add(1, Ordering::Relaxed);
        } else if !was_open {
            self.end_unchanged()?;
        }
        Ok(swept)
    }

    /// Works in the open transaction, which is begun if there is none, as of `now`.
    fn work<T>(
        &mut self,
        noted: Noted,
        now: Timestamp,
        work: impl FnOnce(&mut Work<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        if self.open.is_none() {
            let begin =
                self.connection.prepare_cached("BEGIN IMMEDIATE").and_then(|mut begin| begin.execute([]));
            begin.map_err(Failure::at(Phase::Begin))?;
            self.open = Some(Instant::now());
        }
        self.latest = self.latest.max(now);
        if noted == Noted::InJournal {
            self.journal.begin(now);
        }
        work(&mut Work {
            prepared: Prepared::new(&self.connection),
            now,
            wrote: false,
            memtable: &mut self.memtable,
            journal: (noted == Noted::InJournal).then_some(&mut self.journal),
        })
    }
}

/// Whether what is decided goes to the journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Noted {
    InJournal,
    /// It is there already, or counts only once it is committed.
    Nowhere,
}

/// Why a transaction gave no answers.
#[derive(Debug)]
enum Stop {
    /// The store had stopped before.
    Earlier(Refusal),
    /// It failed.
    Failed(Failure),
}

impl Stop {
    fn error(&self, op: &'static str) -> StoreError {
        match self {
            Self::Earlier(refusal) => refusal.error(op),
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
    queue.abort().into_iter().for_each(|job| job.refuse(shared.refusal()));
}

mod commit;
#[cfg(test)]
mod tests;
