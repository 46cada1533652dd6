//! [`Lane`]: concurrent calls of one kind, put together into statements of many rows. One commit serves many callers.
//!
//! A call that finds nothing under way goes at once. Those that come while [`FLIGHTS_MAX`] batches are under way wait for
//! one of them and then go together. Many that come at once share out among the batches that may go: callers who are
//! answered together come back together, so in one batch they would stay for ever, with a server that has one statement
//! at a time to work at. A lane knows connections and deadlines; what a batch means is for its [`Work`].

use std::collections::{HashSet, VecDeque};
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use hapax_core::{BoxFuture, RecordId, StoreError};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_postgres::Client;

use crate::error::{Effect, Fault, Refusal};
use crate::link::Link;
use crate::sql::Sql;

/// How many batches of one lane are under way at a time. One more than one: while the server waits for its disk, the
/// next batch is on its way. More would make the batches smaller.
const FLIGHTS_MAX: usize = 2;

/// How many calls go together at most: a server takes a few milliseconds for so many rows.
const BATCH_MAX: usize = 256;

/// So few go together even if another batch may go as well: a statement costs a server about as much as some rows.
const SHARE_MIN: usize = 16;

/// How many bytes of outcomes go together; a larger one goes alone.
const BATCH_BYTES_MAX: usize = 1 << 20;

/// How many calls may wait. Each caller waits for its own, so this is about a server that hangs.
const WAITING_MAX: usize = 65_536;

/// How long to leave a server alone that has just broken a connection, before the same is sent again.
const REPEAT_AFTER: Duration = Duration::from_millis(10);

/// One call that can go together with others.
pub(crate) trait Work: Send + Sync + Sized + 'static {
    /// What its caller wants to know.
    type Answer: Send + 'static;

    fn op(&self) -> &'static str;

    /// Which record it is about. A batch has one call for each.
    fn id(&self) -> &RecordId;

    /// About how many bytes are sent for it.
    fn bytes(&self) -> usize;

    /// Does it all. Doing it twice is the same as doing it once.
    fn run<'a>(
        client: &'a Client,
        sql: &'a Sql,
        batch: &'a [&'a Self],
        row_wait: Duration,
    ) -> BoxFuture<'a, Vec<Result<Self::Answer, Fault>>>;

    /// The answer when somebody's open transaction keeps hold of the record.
    fn held(&self) -> Result<Self::Answer, StoreError>;
}

/// Calls of one kind on their way to the server.
pub(crate) struct Lane<W: Work>(Arc<Shared<W>>);

struct Shared<W: Work> {
    link: Arc<Link>,
    waiting: Mutex<Waiting<W>>,
}

struct Waiting<W: Work> {
    entries: VecDeque<Entry<W>>,
    flights: usize,
    /// How many of the flights have a batch under way.
    aloft: usize,
}

struct Entry<W: Work> {
    work: W,
    caller: oneshot::Sender<Result<W::Answer, StoreError>>,
    /// Whether it is decided what becomes of it: sent, or given up by its caller. Whoever sets this first decides.
    is_decided: Arc<AtomicBool>,
}

impl<W: Work> Lane<W> {
    pub(crate) fn new(link: Arc<Link>) -> Self {
        let waiting = Mutex::new(Waiting { entries: VecDeque::new(), flights: 0, aloft: 0 });
        Self(Arc::new(Shared { link, waiting }))
    }

    /// Sends a call, with others where there are any, and waits for its answer.
    pub(crate) async fn send(&self, work: W) -> Result<W::Answer, StoreError> {
        let op = work.op();
        let (caller, answer) = oneshot::channel();
        let is_decided = Arc::new(AtomicBool::new(false));
        self.0.push(Entry { work, caller, is_decided: is_decided.clone() })?;
        match timeout(self.0.link.options.timeout, answer).await {
            Ok(Ok(answer)) => answer,
            // Its runtime ended under it.
            Ok(Err(_dropped)) => Err(Refusal::TimedOut.error(op, Effect::Write)),
            Err(_elapsed) => {
                let was_sent = is_decided.swap(true, Ordering::SeqCst);
                let effect = if was_sent { Effect::Write } else { Effect::Read };
                Err(Refusal::TimedOut.error(op, effect))
            }
        }
    }
}

impl<W: Work> fmt::Debug for Lane<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What waits may hold what must not reach a log.
        f.debug_struct("Lane").field("waiting", &self.0.waiting.lock().entries.len()).finish()
    }
}

impl<W: Work> Shared<W> {
    fn push(self: &Arc<Self>, entry: Entry<W>) -> Result<(), StoreError> {
        let mut waiting = self.waiting.lock();
        if waiting.entries.len() >= WAITING_MAX {
            return Err(Refusal::TooManyWait.error(entry.work.op(), Effect::Read));
        }
        waiting.entries.push_back(entry);
        if waiting.flights < FLIGHTS_MAX {
            waiting.flights += 1;
            tokio::spawn(Flight { shared: self.clone(), stage: Stage::Grounded }.fly());
        }
        Ok(())
    }

    /// Serves a batch until every caller is answered or on the way alone.
    async fn serve(self: &Arc<Self>, mut batch: Vec<Entry<W>>) {
        let deadline = self.link.deadline();
        let mut unknown = None;
        while let Some(first) = batch.first() {
            let lent = match self.link.lend(first.work.op(), deadline).await {
                Ok(lent) => lent,
                Err(error) => return give_up(batch, error, unknown),
            };
            if unknown.is_none() {
                batch.retain(|entry| !entry.is_decided.swap(true, Ordering::SeqCst));
            }
            batch.retain(Entry::is_wanted);
            if batch.is_empty() {
                return lent.give_back();
            }
            let works: Vec<&W> = batch.iter().map(|entry| &entry.work).collect();
            let running = W::run(lent.client(), &self.link.sql, &works, self.link.row_wait());
            let Ok(answers) = timeout_at(deadline, running).await else {
                return batch.into_iter().for_each(|entry| entry.fail(Refusal::TimedOut, Effect::Write));
            };
            let sorted = sort(batch, answers, unknown.is_some());
            if sorted.ends_connection {
                // At once: those who go alone need its place in the pool.
                drop(lent);
            } else {
                lent.give_back();
            }
            if !sorted.alone.is_empty() {
                // Apart, so that a row that somebody holds does not keep everybody else from going.
                tokio::spawn(self.clone().one_by_one(sorted.alone, deadline));
            }
            // Nobody knows about these. The same statement on another connection tells the truth.
            batch = sorted.lost;
            unknown = sorted.fault.or(unknown);
            if !batch.is_empty() {
                tokio::time::sleep(REPEAT_AFTER).await;
            }
        }
    }

    /// Serves calls that failed together: each on its own, so that one does not harm the others.
    async fn one_by_one(self: Arc<Self>, batch: Vec<Entry<W>>, deadline: Instant) {
        let serving = batch.into_iter().map(async |entry| {
            let lent = match self.link.lend(entry.work.op(), deadline).await {
                Ok(lent) => lent,
                Err(error) => return entry.answer(Err(error)),
            };
            if !entry.is_wanted() {
                return lent.give_back();
            }
            let alone = [&entry.work];
            let running = W::run(lent.client(), &self.link.sql, &alone, self.link.row_wait());
            let answer = timeout_at(deadline, running).await.map(|answers| answers.into_iter().next());
            match answer {
                Ok(Some(Ok(answer))) => {
                    lent.give_back();
                    entry.answer(Ok(answer));
                }
                Ok(Some(Err(fault))) => {
                    if !fault.ends_connection() {
                        lent.give_back();
                    }
                    let told = match fault {
                        Fault::Contended(_) => entry.work.held(),
                        other => Err(other.error(entry.work.op(), Effect::Write)),
                    };
                    entry.answer(told);
                }
                Ok(None) | Err(_) => entry.fail(Refusal::TimedOut, Effect::Write),
            }
        });
        join_all(serving).await;
    }
}

/// What became of a batch.
struct Sorted<W: Work> {
    /// Not applied together; to be tried alone.
    alone: Vec<Entry<W>>,
    /// Applied or not.
    lost: Vec<Entry<W>>,
    fault: Option<Fault>,
    ends_connection: bool,
}

/// Answers whoever has an answer and sorts out the others.
///
/// After a call was lost, a refusal of its repetition says nothing about the first one, which may still be under way
/// and be what is in the way: it stays lost.
fn sort<W: Work>(batch: Vec<Entry<W>>, answers: Vec<Result<W::Answer, Fault>>, was_lost: bool) -> Sorted<W> {
    let was_alone = batch.len() == 1;
    let mut sorted = Sorted { alone: Vec::new(), lost: Vec::new(), fault: None, ends_connection: false };
    for (entry, answer) in batch.into_iter().zip(answers) {
        let fault = match answer {
            Ok(answer) => {
                entry.answer(Ok(answer));
                continue;
            }
            Err(fault) => fault,
        };
        sorted.ends_connection |= fault.ends_connection();
        match fault {
            Fault::Contended(told) | Fault::Lost(told) | Fault::Refused(_, told) if was_lost => {
                sorted.lost.push(entry);
                sorted.fault = Some(Fault::Lost(told));
            }
            Fault::Lost(_) => {
                sorted.lost.push(entry);
                sorted.fault = Some(fault);
            }
            Fault::Contended(_) if was_alone => {
                let told = entry.work.held();
                entry.answer(told);
            }
            Fault::Refused(..) if was_alone => {
                let told = fault.error(entry.work.op(), Effect::Write);
                entry.answer(Err(told));
            }
            Fault::Contended(_) | Fault::Refused(..) => sorted.alone.push(entry),
        }
    }
    sorted
}

/// There is no connection: nothing was applied, unless it was sent before.
fn give_up<W: Work>(batch: Vec<Entry<W>>, error: StoreError, unknown: Option<Fault>) {
    let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    let kind = error.kind();
    for entry in batch {
        let op = entry.work.op();
        let told = match &unknown {
            Some(fault) => fault.clone().error(op, Effect::Write),
            None => StoreError::new(kind, op).with_source(why.clone()),
        };
        entry.answer(Err(told));
    }
}

impl<W: Work> Entry<W> {
    /// Whether its caller still waits. One who gave up may have released the key since, so nothing more is sent for it:
    /// a claim would be for nobody.
    fn is_wanted(&self) -> bool {
        !self.caller.is_closed()
    }

    fn answer(self, answer: Result<W::Answer, StoreError>) {
        // A caller that is gone does not want to know.
        let _ = self.caller.send(answer);
    }

    fn fail(self, refusal: Refusal, effect: Effect) {
        let told = refusal.error(self.work.op(), effect);
        self.answer(Err(told));
    }
}

impl<W: Work> Waiting<W> {
    fn change(&mut self, stage: &mut Stage, to: Stage) {
        self.aloft -= usize::from(*stage == Stage::Aloft);
        self.aloft += usize::from(to == Stage::Aloft);
        self.flights -= usize::from(*stage != Stage::Over && to == Stage::Over);
        *stage = to;
    }

    /// The next batch, sorted, with one call for each record. The others keep their places.
    fn take(&mut self) -> Vec<Entry<W>> {
        let share = self.entries.len().div_ceil(FLIGHTS_MAX.saturating_sub(self.aloft).max(1));
        let count_max = share.clamp(SHARE_MIN, BATCH_MAX);
        let (mut batch, mut ids, mut bytes) = (Vec::new(), HashSet::new(), 0);
        let mut kept = VecDeque::new();
        while let Some(entry) = self.entries.pop_front() {
            if !entry.is_wanted() {
                continue;
            }
            let size = entry.work.bytes();
            let is_full = batch.len() == count_max || (!batch.is_empty() && bytes + size > BATCH_BYTES_MAX);
            if is_full {
                kept.push_back(entry);
                break;
            }
            if ids.insert(*entry.work.id()) {
                bytes += size;
                batch.push(entry);
            } else {
                kept.push_back(entry);
            }
        }
        kept.append(&mut self.entries);
        self.entries = kept;
        batch.sort_unstable_by_key(|entry| *entry.work.id());
        batch
    }
}

/// One batch after another, until nothing waits.
struct Flight<W: Work> {
    shared: Arc<Shared<W>>,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Without a batch.
    Grounded,
    Aloft,
    Over,
}

impl<W: Work> Flight<W> {
    async fn fly(mut self) {
        while let Some(batch) = self.next() {
            self.shared.serve(batch).await;
        }
    }

    /// The next batch; none when nothing waits, and then the flight is over.
    fn next(&mut self) -> Option<Vec<Entry<W>>> {
        let mut waiting = self.shared.waiting.lock();
        waiting.change(&mut self.stage, Stage::Grounded);
        let batch = waiting.take();
        let stage = if batch.is_empty() { Stage::Over } else { Stage::Aloft };
        waiting.change(&mut self.stage, stage);
        (stage == Stage::Aloft).then_some(batch)
    }
}

impl<W: Work> Drop for Flight<W> {
    fn drop(&mut self) {
        // Where its runtime ended under it, the next call begins anew.
        self.shared.waiting.lock().change(&mut self.stage, Stage::Over);
    }
}

#[cfg(test)]
mod tests;
