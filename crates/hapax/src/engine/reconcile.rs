//! Reconciling: on an uncertain record, ask whoever may know, and settle by the answer.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use hapax_core::{BoxFuture, Fence, Reason, RecordId, Recorded, Settlement, Verdict};

use super::{Engine, Job, RECORD_TRIES, Refusal, kept};

/// What is asked when nobody knows whether an operation happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Question {
    /// The record in question; downstream keys derive from it.
    pub id: RecordId,
    /// The attempt of which nobody knows.
    pub fence: Fence,
    /// Why nobody knows.
    pub reason: Reason,
}

/// The answer to a [`Question`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reconciled<T> {
    /// It happened, with this result.
    Applied(T),
    /// It did not happen and will not: it may run now.
    NotApplied,
    /// Nobody knows that either; the record stays uncertain.
    Unknown,
}

pub(crate) type Reconcile = Arc<dyn Fn(Question) -> BoxFuture<'static, Reconciled<Recorded>> + Send + Sync>;

impl Engine {
    /// Asks the job's reconciler and settles by its answer. True when it is worth claiming again.
    pub(super) async fn reconcile(&self, job: &Job, fence: Fence, reason: Reason) -> Result<bool, Refusal> {
        let Some(reconcile) = &job.reconcile else { return Ok(false) };
        let id = job.key.id;
        let question = Question { id, fence, reason };
        let verdict = match AssertUnwindSafe(async { reconcile(question).await }).catch_unwind().await {
            Ok(Reconciled::Applied(recorded)) => {
                let recorded = kept(recorded, self.outcome_bytes_max(&job.policy));
                Verdict::Applied { recorded, retention: job.policy.retention }
            }
            Ok(Reconciled::NotApplied) => Verdict::NotApplied,
            Ok(Reconciled::Unknown) | Err(_) => return Ok(false),
        };
        let settlement = Settlement::new(fence.nonce, verdict);
        let settle = || self.calls.store.settle(&id, &settlement);
        let settled = self.calls.insist("settle", self.calls.timeout, RECORD_TRIES, settle).await;
        self.waiters.wake(&id);
        // Whatever it was, the next claim tells how things stand now.
        settled.map(|_| true).map_err(Refusal::Taken)
    }
}
