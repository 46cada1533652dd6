//! Executions without a claim, where the store fails and the policy prefers running to refusing.

use std::future::Future;

use hapax_core::{Fingerprint, RecordId, Recorded, StoreError};
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::cache::Recalled;
use super::detached::{Detached, Panicked};
use super::lease::Unclaimed;
use super::{Engine, Refusal};

/// The right to execute an operation without a claim. Nothing is recorded.
#[derive(Debug)]
pub(crate) struct UnprotectedPermit {
    id: RecordId,
    _unclaimed: Unclaimed,
    /// Draining waits for it.
    _token: TaskTrackerToken,
}

/// How an operation is answered whose claim the store has not taken.
pub(crate) enum Unprotected {
    Run(UnprotectedPermit),
    /// It ended in this process while the claim was failing.
    Replay(Recorded),
}

impl Engine {
    /// Permits an execution without a claim after the store failed by `error`, unless this process executes the operation
    /// or has its outcome.
    pub(crate) fn permit_unprotected(
        &self,
        id: RecordId,
        fingerprint: &Fingerprint,
        error: StoreError,
    ) -> Result<Unprotected, Refusal> {
        let token = self.admit()?;
        let Some(unclaimed) = self.leases.begin_unclaimed(id) else {
            return Err(Refusal::StoreFailedOnKnownKey(error));
        };
        // In this order: an execution that is not held any more has left its outcome in memory before.
        match self.recall(&id, fingerprint) {
            Some(Recalled::Replay(recorded)) => Ok(Unprotected::Replay(recorded)),
            Some(Recalled::Mismatch) => Err(Refusal::Mismatch),
            None => Ok(Unprotected::Run(UnprotectedPermit { id, _unclaimed: unclaimed, _token: token })),
        }
    }
}

impl UnprotectedPermit {
    pub(crate) fn id(&self) -> RecordId {
        self.id
    }

    /// Executes `work`, which goes on in a task of its own when the future is dropped.
    pub(crate) async fn run<F>(self, work: F) -> Result<F::Output, Refusal>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let id = self.id;
        let run = async move {
            let _permit = self;
            work.await
        };
        Detached::new(run).await.map_err(|Panicked| Refusal::Panicked { id })
    }
}
