//! The engine: claims an operation, runs it under its lease and records its outcome. For authors of *surfaces*: what
//! receives operations in some protocol, such as HTTP requests, function calls or events.
//!
//! It takes bytes and returns bytes. A surface describes an [`Operation`] (key, fingerprint, policy) and
//! [claims](crate::Hapax::claim) it. The answer is
//!
//! - [`Claimed::Replay`]: the operation has ended; what was recorded is the answer;
//! - [`Claimed::Run`]: a [`Permit`] to execute the operation now. [`Permit::run`] executes it so that it outlives its
//!   caller, and records what became of it; [`Permit::finish`] records what the surface executed itself;
//! - a [`Refusal`]: nothing may run now.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use hapax::core::{Class, Fingerprint, Format, Recorded};
//! use hapax::engine::{Claimed, Ended, Execution, Finish, Operation};
//! use hapax::{Hapax, Key, MemoryStore, Scope};
//!
//! /// The formats from 128 on are free for surfaces outside of this crate.
//! const LINES: Format = Format(200);
//!
//! /// The answer; none where it was not kept, or an operator has settled the record with another format.
//! async fn answer(hapax: &Hapax, key: &Key, line: String) -> Result<Option<String>, hapax::engine::Refusal> {
//!     let operation = Operation::new(Scope::new("echo"), key, hapax.policy())
//!         .fingerprint(Fingerprint::builder().part("line", line.as_bytes()).build());
//!     let recorded = match hapax.claim(operation).await? {
//!         Claimed::Replay(recorded) => recorded,
//!         Claimed::Run(permit) => {
//!             let work = move |_context| async move {
//!                 let recorded = Recorded::new(Class::Success, LINES, line.to_uppercase());
//!                 Ended { value: recorded.clone(), finish: Finish::Pin(recorded) }
//!             };
//!             match permit.run(work).await? {
//!                 Execution::Ran { value, .. } => value,
//!                 Execution::Replayed(recorded) => recorded,
//!             }
//!         }
//!     };
//!     let is_line = recorded.format == LINES;
//!     Ok(is_line.then(|| String::from_utf8_lossy(&recorded.payload).into_owned()))
//! }
//!
//! let hapax = Hapax::new(MemoryStore::new());
//! let key = Key::new("line-1").unwrap();
//! assert_eq!(answer(&hapax, &key, "paid".into()).await.unwrap().as_deref(), Some("PAID"));
//! assert_eq!(answer(&hapax, &key, "paid".into()).await.unwrap().as_deref(), Some("PAID"));
//! assert!(answer(&hapax, &key, "something else".into()).await.is_err());
//! # });
//! ```
// Only this module and its children sequence store calls. They know neither a protocol nor a particular store.

pub(crate) mod cache;
pub(crate) mod calls;
mod cancel_claim;
mod context;
mod detached;
pub(crate) mod lease;
mod lookup;
mod operation;
mod permit;
mod reconcile;
mod refusal;
mod sweep;
#[cfg(feature = "http")]
mod unprotected;
pub(crate) mod wait;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use hapax_core::{Claim, ClaimRequest, Fence, Nonce, Reason, RecordId, Recorded, StoreError, StoreErrorKind};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tracing::Instrument;

use self::cache::{Facts, Moment, Recalled};
use self::calls::{Calls, Pauses};
use self::cancel_claim::{Unanswered, unused};
pub use self::context::{Context, LeaseLost};
use self::lease::Leases;
pub use self::operation::Operation;
pub(crate) use self::permit::not_kept;
pub use self::permit::{Ended, Execution, Finish, Permit};
pub(crate) use self::reconcile::Reconcile;
pub use self::reconcile::{Question, Reconciled};
pub use self::refusal::Refusal;
pub(crate) use self::sweep::sweep_for_ever;
#[cfg(feature = "http")]
pub(crate) use self::unprotected::{Unprotected, UnprotectedPermit};
use self::wait::{WaitSlot, Waiters};
use crate::observe::{self, Outage};

/// How often a claim is sent while its answer is lost, before the caller is refused.
const CLAIM_TRIES: u32 = 4;
/// How often recording is tried while the caller waits.
const RECORD_TRIES: u32 = 3;
/// How often recording is tried in the background: at pauses of 2 s, about an hour.
const RECORD_TRIES_BACKGROUND: u32 = 1800;
/// How often one call asks a reconciler: a second time only when another attempt lapsed meanwhile.
const RECONCILE_MAX: u32 = 2;
/// The longest pause that a duplicate is advised to make.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(1);

/// What a claim came to.
#[derive(Debug)]
#[must_use = "a permit that is dropped leaves its record uncertain"]
pub enum Claimed {
    /// The operation may run now.
    Run(Permit),
    /// The operation has ended; this is its outcome.
    Replay(Recorded),
}

/// The parts that all operations share.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) calls: Calls,
    pub(crate) leases: Arc<Leases>,
    pub(crate) waiters: Arc<Waiters>,
    pub(crate) facts: Facts,
    pub(crate) tasks: TaskTracker,
    pub(crate) draining: AtomicBool,
    pub(crate) outage: Outage,
    pub(crate) _keeper: KeeperGuard,
}

/// Ends the thread that renews and sweeps, and waits until it has dropped the store: once the last [`Engine`] is
/// dropped, the store can be opened again.
#[derive(Debug)]
pub(crate) struct KeeperGuard {
    pub(crate) stop: CancellationToken,
    pub(crate) thread: Option<JoinHandle<()>>,
}

impl Drop for KeeperGuard {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            // The thread wakes, drops its few tasks and ends. A panic of it was reported by its own hook.
            let _ = thread.join();
        }
    }
}

impl Engine {
    /// Claims the operation, or answers from what is recorded, within the caller's deadline.
    pub(crate) async fn claim(self: &Arc<Self>, operation: Box<Operation>) -> Result<Claimed, Refusal> {
        match self.recall(&operation.key.id, &operation.fingerprint) {
            Some(recalled) => recalled.into(),
            None => self.claim_unrecalled(operation).await,
        }
    }

    /// The same after [`recall`](Self::recall) has found nothing.
    pub(crate) async fn claim_unrecalled(
        self: &Arc<Self>,
        operation: Box<Operation>,
    ) -> Result<Claimed, Refusal> {
        let id = operation.key.id;
        let Some(deadline) = operation.policy.deadline else {
            let mut is_known = operation.is_known;
            return self.acquire(operation, None, &mut is_known).await;
        };
        let deadline = Instant::now() + deadline;
        let mut is_known = operation.is_known;
        let acquire = Box::pin(self.acquire(operation, Some(deadline), &mut is_known));
        match tokio::time::timeout_at(deadline, acquire).await {
            Ok(claimed) => claimed,
            Err(_elapsed) if is_known => Err(Refusal::Deadline { id }),
            // The claim is cancelled: nothing runs, so the caller must not wait for a result.
            Err(elapsed) => {
                let late = StoreError::new(StoreErrorKind::Unavailable, "claim").with_source(elapsed);
                Err(Refusal::StoreFailed(late))
            }
        }
    }

    /// Claims until the store gives an answer to act on. A duplicate waits between two claims, if its policy lets it.
    /// `is_known` is set once the store has reported a record of the key.
    async fn acquire(
        self: &Arc<Self>,
        operation: Box<Operation>,
        deadline: Option<Instant>,
        is_known: &mut bool,
    ) -> Result<Claimed, Refusal> {
        let id = operation.key.id;
        let wait = operation.policy.wait;
        let wait_until = (!wait.is_zero()).then(|| Instant::now() + wait);
        if operation.is_expired() && !*is_known {
            *is_known = Box::pin(self.remembers(&id)).await?;
            if !*is_known {
                return Err(Refusal::Expired);
            }
        }
        let mut slot = None;
        let mut reconciliations = 0;
        loop {
            let token = self.admit()?;
            let span = observe::execution(&operation.key);
            let (claim, asked_at) = match self.send_claim(&operation).instrument(span.clone()).await {
                Ok(answered) => answered,
                Err(error) if *is_known => return Err(Refusal::StoreFailedOnKnownKey(error)),
                Err(error) => return Err(Refusal::StoreFailed(error)),
            };
            *is_known = true;
            match claim {
                Claim::Acquired(lease) => {
                    let permit = Permit::new(self, operation, lease, asked_at.at, deadline, token, span);
                    return Ok(Claimed::Run(permit.await?));
                }
                Claim::Busy { lease_left } => {
                    // A duplicate executes nothing: draining does not wait for it.
                    drop(token);
                    if !Box::pin(self.wait_for_change(&mut slot, id, wait_until)).await {
                        let retry_after = lease_left.min(RETRY_AFTER_MAX);
                        return Err(Refusal::InProgress { retry_after, lease_left });
                    }
                }
                Claim::Uncertain { fence, reason } if reconciliations < RECONCILE_MAX => {
                    reconciliations += 1;
                    drop(token);
                    if !Box::pin(self.reconcile(&operation, fence, reason)).await? {
                        self.report_lapsed(&operation, fence, reason);
                        return Err(Refusal::Uncertain { id, reason });
                    }
                }
                Claim::Uncertain { fence, reason } => {
                    self.report_lapsed(&operation, fence, reason);
                    return Err(Refusal::Uncertain { id, reason });
                }
                Claim::Replay { recorded, remaining } => {
                    observe::replayed(operation.policy.retention, remaining);
                    let recorded = self.facts.share(&id, recorded);
                    self.facts.keep(id, operation.fingerprint, &recorded, asked_at, remaining);
                    return Ok(Claimed::Replay(recorded));
                }
                Claim::Mismatch => return Err(Refusal::Mismatch),
                Claim::Unreadable => return Err(Refusal::Unreadable { id }),
            }
            if let Some(recalled) = self.recall(&id, &operation.fingerprint) {
                return recalled.into();
            }
        }
    }

    /// Reports a lost owner that this process sees first by a claim. An owner reports other causes itself.
    fn report_lapsed(&self, operation: &Operation, fence: Fence, reason: Reason) {
        let id = operation.key.id;
        if reason == Reason::Lapsed && self.leases.is_first_report(id, fence.attempt) {
            observe::became_uncertain(&id, fence.attempt, operation.label.as_deref(), reason, None);
        }
    }

    /// Lets an execution begin unless the process is draining.
    fn admit(&self) -> Result<TaskTrackerToken, Refusal> {
        // The token is taken before the flag is read: draining either counts the token, or is seen here.
        let token = self.tasks.token();
        if self.draining.load(Ordering::SeqCst) { Err(Refusal::Draining) } else { Ok(token) }
    }

    /// Waits until the record may have changed; false when there is no time or no room to wait.
    pub(crate) async fn wait_for_change(
        &self,
        slot: &mut Option<WaitSlot>,
        id: RecordId,
        until: Option<Instant>,
    ) -> bool {
        let Some(until) = until.filter(|until| *until > Instant::now()) else { return false };
        match slot {
            Some(slot) => slot.changed(until).await,
            // The key is claimed once more before the first wait: it may have changed before the slot was taken.
            None => {
                *slot = self.waiters.join(id);
                slot.is_some()
            }
        }
    }

    /// Sends the claim, again with the same nonce when its answer is lost. All tries together take no longer than one
    /// call may. Where the claim may stand and is not used, also because the caller has dropped this future, it is
    /// cancelled in the background.
    async fn send_claim(self: &Arc<Self>, operation: &Operation) -> Result<(Claim, Moment), StoreError> {
        let policy = &operation.policy;
        let mut ask = Unanswered::new(
            self,
            ClaimRequest {
                key: operation.key.clone(),
                fingerprint: operation.fingerprint,
                nonce: Nonce::random(),
                lease: policy.lease,
                on_lapse: policy.on_lapse,
                attempts_max: policy.attempts_max,
                uncertain_retention: policy.uncertain_retention,
            },
        );
        let mut pauses = Pauses::new();
        let mut in_doubt = false;
        let mut tries = 0;
        let within = self.calls.within(ask.lease);
        let mut until = Instant::now() + within;
        loop {
            tries += 1;
            let asked_at = self.facts.moment(&ask.key.id);
            let left = until.saturating_duration_since(asked_at.at);
            // An answer that does not come must leave time to ask again.
            let limit = if tries == CLAIM_TRIES { left } else { left / 2 };
            // Inside an async block, because a store may panic before it returns its future.
            let call = async { self.calls.store.claim(&ask).await };
            let answer = self.calls.once("claim", limit, call).await;
            let took = asked_at.at.elapsed();
            match answer {
                // The answer took a whole lease to arrive. Nothing has run, and the claim may have lapsed to another
                // owner by now.
                Ok(Claim::Acquired(_)) if took >= ask.lease => {
                    Box::pin(self.cancel_claim(unused(&ask), ask.on_lapse)).await
                }
                // This claim itself, recorded as uncertain before its answer arrived.
                Ok(Claim::Uncertain { fence, .. }) if fence.nonce == ask.nonce => {
                    Box::pin(self.cancel_claim(unused(&ask), ask.on_lapse)).await
                }
                Ok(claim) => {
                    ask.answered();
                    observe::claimed_in(took);
                    self.outage.succeeded();
                    return Ok((claim, asked_at));
                }
                Err(error)
                    if tries < CLAIM_TRIES && (error.is_unknown() || in_doubt && error.is_transient()) =>
                {
                    in_doubt = true;
                    pauses.next().await;
                    continue;
                }
                Err(error) => {
                    if !in_doubt && !error.is_unknown() {
                        ask.answered();
                    }
                    self.outage.failed(&error);
                    return Err(error);
                }
            }
            if tries == CLAIM_TRIES {
                ask.answered();
                let late = StoreError::new(StoreErrorKind::Unavailable, "claim");
                return Err(late.with_source("every answer came later than the lease it was about"));
            }
            ask.renew();
            in_doubt = false;
            until = Instant::now() + within;
        }
    }
}

impl From<Recalled> for Result<Claimed, Refusal> {
    fn from(recalled: Recalled) -> Self {
        match recalled {
            Recalled::Replay(recorded) => Ok(Claimed::Replay(recorded)),
            Recalled::Mismatch => Err(Refusal::Mismatch),
        }
    }
}
