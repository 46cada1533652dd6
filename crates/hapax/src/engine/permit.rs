//! [`Permit`]: the right to execute a claimed operation, and the recording of its outcome.

use std::fmt;
use std::future::{Future, ready};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use hapax_core::{Fenced, Format, Lease, Reason, RecordId, Recorded, StoreError, StoreErrorKind};
use tokio::runtime::Handle;
use tokio::time::Instant;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tracing::{Instrument, Span};

use super::cache::Moment;
use super::detached::{Detached, Panicked};
use super::lease::Hold;
use super::{Context, Engine, Operation, RECORD_TRIES, RECORD_TRIES_BACKGROUND, RETRY_AFTER_MAX, Refusal};
use crate::observe::{self, Present};
use crate::policy::Policy;

/// What a run returns: a value for its caller, and what becomes of the record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ended<V> {
    /// For the caller of this run. It is not recorded.
    pub value: V,
    /// What becomes of the record.
    pub finish: Finish,
}

/// What becomes of the record after a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Finish {
    /// Final: every retry gets this outcome.
    Pin(Recorded),
    /// Not final: a retry runs the operation again. What was answered is kept for operators, where it is given.
    Release(Option<Recorded>),
    /// It is unknown whether the operation happened: the record waits to be settled.
    Uncertain(Reason),
}

/// What an execution came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Execution<V> {
    /// The operation ran.
    Ran {
        /// What the run returned.
        value: V,
        /// Whether its outcome is stored. If not, it is being stored in the background, or it was not an outcome to keep
        /// and another attempt had taken the record over.
        recorded: bool,
    },
    /// The operation ran, but another attempt had taken its record over. The outcome of that attempt is the answer.
    Replayed(Recorded),
}

/// The right to execute one claimed operation. Its lease is renewed as long as the permit exists.
///
/// A permit that is dropped without an outcome leaves the record uncertain: the operation may have been executed.
#[must_use = "a permit that is dropped leaves its record uncertain"]
pub struct Permit {
    /// None once the outcome is recorded, or is being recorded in the background.
    attempt: Option<Attempt>,
    deadline: Option<Instant>,
    span: Span,
    _present: Present,
}

/// A claimed operation and its lease.
struct Attempt {
    engine: Arc<Engine>,
    operation: Box<Operation>,
    hold: Hold,
    /// A permit may be dropped outside of the runtime on which it was claimed.
    runtime: Handle,
    /// Draining waits for it.
    _token: TaskTrackerToken,
}

impl Permit {
    /// Begins to renew the lease of a claim that was acquired by a call at `asked_at`. Where the operation must not run,
    /// the claim is cancelled.
    pub(super) async fn new(
        engine: &Arc<Engine>,
        operation: Box<Operation>,
        lease: Lease,
        asked_at: Instant,
        deadline: Option<Instant>,
        token: TaskTrackerToken,
        span: Span,
    ) -> Result<Self, Refusal> {
        span.in_scope(|| observe::attempt(&lease));
        // There was no record at the moment that counts: the claim itself.
        let refusal = if lease.fence.attempt == 1 && operation.is_expired() {
            Refusal::Expired
        } else if let Some(hold) = engine.leases.hold(lease.clone(), asked_at, &operation) {
            let runtime = Handle::current();
            let attempt = Attempt { engine: engine.clone(), operation, hold, runtime, _token: token };
            let present = Present::in_gauge(observe::IN_PROGRESS);
            return Ok(Self { attempt: Some(attempt), deadline, span, _present: present });
        } else {
            Refusal::InProgress { retry_after: RETRY_AFTER_MAX, lease_left: RETRY_AFTER_MAX }
        };
        let (engine, on_lapse) = (engine.clone(), operation.policy.on_lapse);
        let cancel = async move {
            engine.cancel_claim(lease, on_lapse).await;
            drop(token);
        };
        let _ = Detached::new(cancel).await;
        Err(refusal)
    }

    /// The record of the operation.
    pub fn id(&self) -> RecordId {
        self.attempt().operation.key.id
    }

    /// What a run may know about its attempt.
    pub fn context(&self) -> Context {
        let Attempt { engine, hold, .. } = self.attempt();
        Context::new(hold.held.clone(), engine.calls.clone())
    }

    fn attempt(&self) -> &Attempt {
        self.attempt.as_ref().expect("it is taken only when the permit is used up")
    }

    /// Executes `work`, records its outcome and only then returns. When its future is dropped, or the deadline of the
    /// operation passes, the execution goes on in a task of its own. A panic of `work` leaves the record uncertain.
    ///
    /// # Errors
    /// [`Refusal::Panicked`], [`Refusal::Deadline`], and [`Refusal::Superseded`] when another attempt has taken the
    /// record over and its outcome is not known.
    pub async fn run<V, W, F>(self, work: W) -> Result<Execution<V>, Refusal>
    where
        V: Send + 'static,
        W: FnOnce(Context) -> F + Send + 'static,
        F: Future<Output = Ended<V>> + Send + 'static,
    {
        let (id, deadline, span) = (self.id(), self.deadline, self.span.clone());
        let run = Detached::new(self.perform(work).instrument(span));
        let ended = match deadline {
            None => run.await,
            Some(deadline) => match tokio::time::timeout_at(deadline, run).await {
                Ok(ended) => ended,
                Err(_elapsed) => return Err(Refusal::Deadline { id }),
            },
        };
        // Panics of the work are caught inside: this one would be a defect of the engine.
        ended.unwrap_or_else(|Panicked| Err(Refusal::Panicked { id }))
    }

    /// Records the outcome of what the surface executed itself, as [`run`](Self::run) does. A deadline does not apply: the
    /// outcome is there.
    ///
    /// # Errors
    /// [`Refusal::Superseded`] when another attempt has taken the record over and its outcome is not known.
    pub async fn finish(self, finish: Finish) -> Result<Execution<()>, Refusal> {
        self.without_deadline().run(|_context| ready(Ended { value: (), finish })).await
    }

    /// The same, where the caller does not wait for the execution, only for the recording.
    pub(crate) fn without_deadline(mut self) -> Self {
        self.deadline = None;
        self
    }

    async fn perform<V, W, F>(mut self, work: W) -> Result<Execution<V>, Refusal>
    where
        W: FnOnce(Context) -> F,
        F: Future<Output = Ended<V>>,
    {
        let (id, context) = (self.id(), self.context());
        // Called inside the guard: a panic before the first await is a panic of the run, too.
        let ended = AssertUnwindSafe(async move { work(context).await }).catch_unwind().await;
        let attempt = self.attempt.take().expect("the permit is used up here");
        match ended {
            Ok(Ended { value, finish }) => attempt.end(value, finish).await,
            Err(_panic) => {
                attempt.record_or_retry(Finish::Uncertain(Reason::Panicked)).await;
                Err(Refusal::Panicked { id })
            }
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let Some(attempt) = self.attempt.take() else { return };
        let reason = if std::thread::panicking() { Reason::Panicked } else { Reason::NoAnswer };
        // On a runtime that has shut down nothing is spawned. The lease lapses, and the record becomes uncertain then.
        let runtime = attempt.runtime.clone();
        runtime.spawn(attempt.record_or_retry(Finish::Uncertain(reason)).map(drop));
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.attempt.as_ref().map(|attempt| attempt.operation.key.id);
        f.debug_struct("Permit").field("id", &id).finish_non_exhaustive()
    }
}

/// Where the outcome of an attempt is.
#[derive(PartialEq)]
enum Recording {
    /// In the store.
    Applied,
    /// Discarded: another attempt has taken the record over.
    Superseded,
    /// On its way into the store, in the background.
    Pending,
    /// Too large for the store and of no use without its content: the key is free.
    Freed,
}

impl Attempt {
    /// Records the outcome, then answers.
    async fn end<V>(self, value: V, finish: Finish) -> Result<Execution<V>, Refusal> {
        let is_pinned = matches!(finish, Finish::Pin(_));
        let (engine, id, fingerprint) =
            (self.engine.clone(), self.operation.key.id, self.operation.fingerprint);
        match self.record_or_retry(finish).await {
            Recording::Superseded if is_pinned => {
                Box::pin(engine.outcome_of_successor(id, &fingerprint)).await.map(Execution::Replayed)
            }
            recording => Ok(Execution::Ran { value, recorded: recording == Recording::Applied }),
        }
    }

    /// Records the outcome. What cannot be recorded now is retried in the background.
    async fn record_or_retry(self, finish: Finish) -> Recording {
        let finish = finish.within(self.engine.outcome_bytes_max(&self.operation.policy));
        let ended_at = self.engine.facts.moment(&self.operation.key.id);
        let fenced = self.record(&finish, ended_at, RECORD_TRIES).await;
        observe::recorded_in(ended_at.at.elapsed());
        if let (Finish::Uncertain(reason), Ok(Fenced::Applied) | Err(_)) = (&finish, &fenced) {
            self.hold.held.report_uncertain(*reason);
        }
        match fenced {
            Ok(Fenced::Applied) => Recording::Applied,
            Ok(Fenced::Lost) => {
                self.hold.held.report_lost();
                Recording::Superseded
            }
            Err(error) if finish.is_whole_or_nothing() && error.kind() == StoreErrorKind::TooLarge => {
                tracing::error!(id = %self.operation.key.id, %error, "a dead letter does not fit into the store");
                let _ = self.write(&Finish::Release(None), ended_at, RECORD_TRIES).await;
                Recording::Freed
            }
            Err(error) => {
                tracing::error!(id = %self.operation.key.id, %error, "failed to record an outcome; retrying in the background");
                self.record_in_background(finish, ended_at);
                Recording::Pending
            }
        }
    }

    /// Goes on recording after the caller was answered; the lease is renewed meanwhile.
    fn record_in_background(self, finish: Finish, ended_at: Moment) {
        tokio::spawn(async move {
            let id = self.operation.key.id;
            match self.record(&finish, ended_at, RECORD_TRIES_BACKGROUND).await {
                Ok(Fenced::Applied) => tracing::info!(%id, "outcome recorded after a retry"),
                Ok(Fenced::Lost) => self.hold.held.report_lost(),
                Err(error) => tracing::error!(%id, %error, "outcome not recorded; stopped retrying"),
            }
        });
    }

    /// Writes the outcome. What the store finds too large although it did not say so is written as not kept.
    ///
    /// The outcome was ready at `ended_at`: its retention counts from some moment after that, whichever try the store
    /// has applied.
    async fn record(&self, finish: &Finish, ended_at: Moment, tries: u32) -> Result<Fenced, StoreError> {
        let mut fenced = self.write(finish, ended_at, tries).await;
        let is_too_large = matches!(&fenced, Err(error) if error.kind() == StoreErrorKind::TooLarge);
        if is_too_large && !finish.is_whole_or_nothing() {
            fenced = self.write(&finish.clone().within(0), ended_at, tries).await;
        }
        self.engine.waiters.wake(&self.operation.key.id);
        fenced
    }

    async fn write(&self, finish: &Finish, ended_at: Moment, tries: u32) -> Result<Fenced, StoreError> {
        let Engine { calls, facts, .. } = &*self.engine;
        let lease = &self.hold.held.lease;
        let within = calls.within(lease.length);
        match finish {
            Finish::Pin(recorded) => {
                let Operation { fingerprint, policy, .. } = &*self.operation;
                let retention = policy.retention_of(recorded);
                let complete = || calls.store.complete(lease, recorded, retention);
                let fenced = calls.insist("complete", within, tries, complete).await;
                if matches!(fenced, Ok(Fenced::Applied)) {
                    facts.keep(lease.id, *fingerprint, recorded, ended_at, retention);
                }
                fenced
            }
            Finish::Release(answered) => {
                let release = || calls.store.release(lease, answered.as_ref());
                calls.insist("release", within, tries, release).await
            }
            Finish::Uncertain(reason) => {
                let abandon = || calls.store.abandon(lease, *reason);
                calls.insist("abandon", within, tries, abandon).await
            }
        }
    }
}

impl Engine {
    /// The largest outcome that is kept: no more than the store takes, so that it never refuses what has happened.
    pub(crate) fn outcome_bytes_max(&self, policy: &Policy) -> usize {
        policy.outcome_bytes_max.min(self.calls.store.outcome_bytes_max())
    }
}

impl Finish {
    /// Whether it has no form without its content: a dead letter is the only copy of its event.
    fn is_whole_or_nothing(&self) -> bool {
        matches!(self, Self::Pin(recorded) if recorded.format == Format::DEAD_LETTER)
    }

    /// The same, with an outcome that is larger than may be kept marked as such.
    fn within(self, bytes_max: usize) -> Self {
        match self {
            finish if finish.is_whole_or_nothing() => finish,
            Self::Pin(recorded) => Self::Pin(kept(recorded, bytes_max)),
            // A tombstone is for operators: what does not fit is left out.
            Self::Release(Some(answered)) if answered.len() > bytes_max => Self::Release(None),
            finish => finish,
        }
    }
}

/// The outcome, without its content where that is larger than may be kept.
pub(super) fn kept(recorded: Recorded, bytes_max: usize) -> Recorded {
    if recorded.len() > bytes_max { not_kept(&recorded) } else { recorded }
}

/// The fact that the operation ended, and how, without its content.
pub(crate) fn not_kept(recorded: &Recorded) -> Recorded {
    Recorded::new(recorded.class, Format::NOT_KEPT, Bytes::new())
}
