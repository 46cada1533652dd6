//! [`Batcher`]: coalesces concurrent calls of one kind into multi-row statements. One commit serves many callers.
//!
//! A call is sent at once if nothing is in flight. Calls that arrive while [`CONCURRENT_BATCHES_MAX`] batches are in flight are queued
//! and sent together in the next one. A burst is split among the free batches: callers that are answered together tend to
//! come back together, so a single batch would stay single, with a server that runs one statement at a time. The batcher
//! knows connections and deadlines; the meaning of a batch is up to [`BatchCall`].

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

use crate::error::{CallFailure, Effect, Fault};
use crate::pool::ConnectionPool;
use crate::sql::Sql;

/// How many batches are in flight at a time. With two, the next batch travels while the server waits for its disk. More
/// would make the batches smaller.
const CONCURRENT_BATCHES_MAX: usize = 2;

/// The batch size limit in calls: a server takes a few milliseconds for so many rows.
const BATCH_MAX: usize = 256;

/// The smallest batch that a burst is split into: a statement costs the server about as much as this many rows.
const SHARE_MIN: usize = 16;

/// The batch size limit in bytes of outcomes; a larger outcome is sent alone.
const BATCH_BYTES_MAX: usize = 1 << 20;

/// The queue limit. Each caller waits only for its own timeout, so this bounds memory when a server hangs.
const QUEUE_MAX: usize = 65_536;

/// Back-off before repeating a statement after the server broke a connection.
const REPEAT_AFTER: Duration = Duration::from_millis(10);

/// A call that can be sent in a batch.
pub(crate) trait BatchCall: Send + Sync + Sized + 'static {
    /// The caller's answer.
    type Answer: Send + 'static;

    fn op(&self) -> &'static str;

    /// The record that it concerns. A batch has at most one call per record.
    fn id(&self) -> &RecordId;

    /// The approximate number of bytes it sends.
    fn bytes(&self) -> usize;

    /// Runs a batch. It must be idempotent.
    fn run<'a>(
        client: &'a Client,
        sql: &'a Sql,
        batch: &'a [&'a Self],
        row_wait: Duration,
    ) -> BoxFuture<'a, Vec<Result<Self::Answer, Fault>>>;

    /// The answer if another open transaction holds the record.
    fn held(&self) -> Result<Self::Answer, StoreError>;
}

/// A queue of calls of one kind.
pub(crate) struct Batcher<W: BatchCall>(Arc<Shared<W>>);

struct Shared<W: BatchCall> {
    pool: Arc<ConnectionPool>,
    queue: Mutex<Queue<W>>,
}

struct Queue<W: BatchCall> {
    entries: VecDeque<PendingCall<W>>,
    tasks: usize,
    /// How many of them have a batch in flight.
    running: usize,
}

struct PendingCall<W: BatchCall> {
    work: W,
    caller: oneshot::Sender<Result<W::Answer, StoreError>>,
    /// Set by the first of two: the batch task that sends it, or the caller that times out.
    is_taken: Arc<AtomicBool>,
}

impl<W: BatchCall> Batcher<W> {
    pub(crate) fn new(pool: Arc<ConnectionPool>) -> Self {
        let queue = Mutex::new(Queue { entries: VecDeque::new(), tasks: 0, running: 0 });
        Self(Arc::new(Shared { pool, queue }))
    }

    /// Sends a call, batched with concurrent ones, and waits for its answer.
    pub(crate) async fn send(&self, work: W) -> Result<W::Answer, StoreError> {
        let op = work.op();
        let (caller, answer) = oneshot::channel();
        let is_taken = Arc::new(AtomicBool::new(false));
        self.0.push(PendingCall { work, caller, is_taken: is_taken.clone() })?;
        match timeout(self.0.pool.options.timeout, answer).await {
            Ok(Ok(answer)) => answer,
            // The runtime shut down.
            Ok(Err(_dropped)) => Err(CallFailure::TimedOut.error(op, Effect::Write)),
            Err(_elapsed) => {
                let was_sent = is_taken.swap(true, Ordering::SeqCst);
                let effect = if was_sent { Effect::Write } else { Effect::Read };
                Err(CallFailure::TimedOut.error(op, effect))
            }
        }
    }
}

impl<W: BatchCall> fmt::Debug for Batcher<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Queued calls may hold what must not be logged.
        f.debug_struct("Batcher").field("queued", &self.0.queue.lock().entries.len()).finish()
    }
}

impl<W: BatchCall> Shared<W> {
    fn push(self: &Arc<Self>, entry: PendingCall<W>) -> Result<(), StoreError> {
        let mut queue = self.queue.lock();
        if queue.entries.len() >= QUEUE_MAX {
            return Err(CallFailure::TooManyWait.error(entry.work.op(), Effect::Read));
        }
        queue.entries.push_back(entry);
        if queue.tasks < CONCURRENT_BATCHES_MAX {
            queue.tasks += 1;
            tokio::spawn(BatchTask { shared: self.clone(), stage: Stage::Idle }.run());
        }
        Ok(())
    }

    /// Sends a batch until every caller has an answer or is served individually.
    async fn serve(self: &Arc<Self>, mut batch: Vec<PendingCall<W>>) {
        let deadline = self.pool.deadline();
        let mut unknown = None;
        while let Some(first) = batch.first() {
            let connection = match self.pool.acquire(first.work.op(), deadline).await {
                Ok(connection) => connection,
                Err(error) => return fail_all(batch, error, unknown),
            };
            if unknown.is_none() {
                batch.retain(|entry| !entry.is_taken.swap(true, Ordering::SeqCst));
            }
            batch.retain(PendingCall::is_wanted);
            if batch.is_empty() {
                return connection.return_to_pool();
            }
            let works: Vec<&W> = batch.iter().map(|entry| &entry.work).collect();
            let running = W::run(connection.client(), &self.pool.sql, &works, self.pool.row_wait());
            let Ok(answers) = timeout_at(deadline, running).await else {
                return batch.into_iter().for_each(|entry| entry.fail(CallFailure::TimedOut, Effect::Write));
            };
            let sorted = sort_answers(batch, answers, unknown.is_some());
            if sorted.ends_connection {
                // Before the next step: the calls that are served individually need its place in the pool.
                drop(connection);
            } else {
                connection.return_to_pool();
            }
            if !sorted.alone.is_empty() {
                // In a task of its own, so that a locked row does not hold up the other calls.
                tokio::spawn(self.clone().serve_individually(sorted.alone, deadline));
            }
            // The result of these is unknown. Repeating the statement on another connection resolves it.
            batch = sorted.lost;
            unknown = sorted.fault.or(unknown);
            if !batch.is_empty() {
                tokio::time::sleep(REPEAT_AFTER).await;
            }
        }
    }

    /// Serves calls of a failed batch individually, so that they do not affect each other.
    async fn serve_individually(self: Arc<Self>, batch: Vec<PendingCall<W>>, deadline: Instant) {
        let serving = batch.into_iter().map(async |entry| {
            let connection = match self.pool.acquire(entry.work.op(), deadline).await {
                Ok(connection) => connection,
                Err(error) => return entry.answer(Err(error)),
            };
            if !entry.is_wanted() {
                return connection.return_to_pool();
            }
            let alone = [&entry.work];
            let running = W::run(connection.client(), &self.pool.sql, &alone, self.pool.row_wait());
            let answer = timeout_at(deadline, running).await.map(|answers| answers.into_iter().next());
            match answer {
                Ok(Some(Ok(answer))) => {
                    connection.return_to_pool();
                    entry.answer(Ok(answer));
                }
                Ok(Some(Err(fault))) => {
                    if !fault.ends_connection() {
                        connection.return_to_pool();
                    }
                    let error = match fault {
                        Fault::Contended(_) => entry.work.held(),
                        other => Err(other.error(entry.work.op(), Effect::Write)),
                    };
                    entry.answer(error);
                }
                Ok(None) | Err(_) => entry.fail(CallFailure::TimedOut, Effect::Write),
            }
        });
        join_all(serving).await;
    }
}

/// The result of a batch.
struct BatchResult<W: BatchCall> {
    /// Not applied together; to be sent individually.
    alone: Vec<PendingCall<W>>,
    /// With unknown result.
    lost: Vec<PendingCall<W>>,
    fault: Option<Fault>,
    ends_connection: bool,
}

/// Sends the answers and sorts out the failed calls.
///
/// After a call was lost, a failure of its repetition says nothing about the first statement, which may still be running
/// and be the reason for the failure: it stays lost.
fn sort_answers<W: BatchCall>(
    batch: Vec<PendingCall<W>>,
    answers: Vec<Result<W::Answer, Fault>>,
    was_lost: bool,
) -> BatchResult<W> {
    let was_alone = batch.len() == 1;
    let mut sorted = BatchResult { alone: Vec::new(), lost: Vec::new(), fault: None, ends_connection: false };
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
            Fault::Contended(message) | Fault::Lost(message) | Fault::Refused(_, message) if was_lost => {
                sorted.lost.push(entry);
                sorted.fault = Some(Fault::Lost(message));
            }
            Fault::Lost(_) => {
                sorted.lost.push(entry);
                sorted.fault = Some(fault);
            }
            Fault::Contended(_) if was_alone => {
                let error = entry.work.held();
                entry.answer(error);
            }
            Fault::Refused(..) if was_alone => {
                let error = fault.error(entry.work.op(), Effect::Write);
                entry.answer(Err(error));
            }
            Fault::Contended(_) | Fault::Refused(..) => sorted.alone.push(entry),
        }
    }
    sorted
}

/// Without a connection: nothing was applied, unless it was sent before.
fn fail_all<W: BatchCall>(batch: Vec<PendingCall<W>>, error: StoreError, unknown: Option<Fault>) {
    let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    let kind = error.kind();
    for entry in batch {
        let op = entry.work.op();
        let error = match &unknown {
            Some(fault) => fault.clone().error(op, Effect::Write),
            None => StoreError::new(kind, op).with_source(why.clone()),
        };
        entry.answer(Err(error));
    }
}

impl<W: BatchCall> PendingCall<W> {
    /// Whether its caller still waits. A caller that timed out may have released the key since, so nothing more may be
    /// sent for it: a claim would have no owner.
    fn is_wanted(&self) -> bool {
        !self.caller.is_closed()
    }

    fn answer(self, answer: Result<W::Answer, StoreError>) {
        // The caller may be gone.
        let _ = self.caller.send(answer);
    }

    fn fail(self, failure: CallFailure, effect: Effect) {
        let error = failure.error(self.work.op(), effect);
        self.answer(Err(error));
    }
}

impl<W: BatchCall> Queue<W> {
    fn change(&mut self, stage: &mut Stage, to: Stage) {
        self.running -= usize::from(*stage == Stage::Running);
        self.running += usize::from(to == Stage::Running);
        self.tasks -= usize::from(*stage != Stage::Finished && to == Stage::Finished);
        *stage = to;
    }

    /// Takes the next batch, sorted, with one call per record. The others keep their order.
    fn take(&mut self) -> Vec<PendingCall<W>> {
        let share = self.entries.len().div_ceil(CONCURRENT_BATCHES_MAX.saturating_sub(self.running).max(1));
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

/// A task that sends batches until the queue is empty.
struct BatchTask<W: BatchCall> {
    shared: Arc<Shared<W>>,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Without a batch.
    Idle,
    Running,
    Finished,
}

impl<W: BatchCall> BatchTask<W> {
    async fn run(mut self) {
        while let Some(batch) = self.next() {
            self.shared.serve(batch).await;
        }
    }

    /// The next batch; none when the queue is empty, which ends the task.
    fn next(&mut self) -> Option<Vec<PendingCall<W>>> {
        let mut queue = self.shared.queue.lock();
        queue.change(&mut self.stage, Stage::Idle);
        let batch = queue.take();
        let stage = if batch.is_empty() { Stage::Finished } else { Stage::Running };
        queue.change(&mut self.stage, stage);
        (stage == Stage::Running).then_some(batch)
    }
}

impl<W: BatchCall> Drop for BatchTask<W> {
    fn drop(&mut self) {
        // Also on runtime shutdown; then the next call starts a new task.
        self.shared.queue.lock().change(&mut self.stage, Stage::Finished);
    }
}

#[cfg(test)]
mod tests;
