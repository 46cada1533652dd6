//! Executions without a claim, where the store fails and the policy prefers running to refusing.

use std::future::Future;

use hapax_core::{RecordId, StoreError};
use tokio_util::task::task_tracker::TaskTrackerToken;

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

impl Engine {
    /// Permits an execution without a claim after the store failed by `error`, unless this process already executes the
    /// operation.
    pub(crate) fn permit_unprotected(
        &self,
        id: RecordId,
        error: StoreError,
    ) -> Result<UnprotectedPermit, Refusal> {
        let token = self.admit()?;
        match self.leases.begin_unclaimed(id) {
            Some(unclaimed) => Ok(UnprotectedPermit { id, _unclaimed: unclaimed, _token: token }),
            None => Err(Refusal::StoreFailedOnKnownKey(error)),
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
