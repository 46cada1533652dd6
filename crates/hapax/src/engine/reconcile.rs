//! Reconciling: asks the application whether an uncertain operation happened, and settles the record by its answer.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use hapax_core::{BoxFuture, Fence, Reason, RecordId, Recorded, Settlement, Verdict};

use super::permit::kept;
use super::{Engine, Operation, RECORD_TRIES, Refusal};

/// What is asked when it is unknown whether an operation happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Question {
    /// The record in question; downstream keys derive from it.
    pub id: RecordId,
    /// The attempt whose outcome is unknown.
    pub fence: Fence,
    /// Why it is unknown.
    pub reason: Reason,
}

/// The answer to a [`Question`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reconciled<T> {
    /// It happened, with this result.
    Applied(T),
    /// It did not happen and will not: it may run now.
    NotApplied,
    /// That is unknown, too; the record stays uncertain.
    Unknown,
}

pub(crate) type Reconcile = Arc<dyn Fn(Question) -> BoxFuture<'static, Reconciled<Recorded>> + Send + Sync>;

impl Engine {
    /// Asks the operation's reconciler and settles by its answer. True when the key may be claimed again.
    pub(super) async fn reconcile(
        &self,
        operation: &Operation,
        fence: Fence,
        reason: Reason,
    ) -> Result<bool, Refusal> {
        let Some(reconcile) = &operation.reconcile else { return Ok(false) };
        let id = operation.key.id;
        let question = Question { id, fence, reason };
        let verdict = match AssertUnwindSafe(async { reconcile(question).await }).catch_unwind().await {
            Ok(Reconciled::Applied(recorded)) => {
                let retention = operation.policy.retention_of(&recorded);
                let recorded = kept(recorded, self.outcome_bytes_max(&operation.policy));
                Verdict::Applied { recorded, retention }
            }
            Ok(Reconciled::NotApplied) => Verdict::NotApplied,
            Ok(Reconciled::Unknown) | Err(_) => return Ok(false),
        };
        let settlement = Settlement::new(fence.nonce, verdict);
        let settle = || self.calls.store.settle(&id, &settlement);
        let settled = self.calls.insist("settle", self.calls.timeout, RECORD_TRIES, settle).await;
        self.waiters.wake(&id);
        // Whatever the result was, the next claim returns the current state.
        settled.map(|_| true).map_err(Refusal::StoreFailedOnKnownKey)
    }
}
