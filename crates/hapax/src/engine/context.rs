//! [`Context`]: what a run may know about its own attempt.

use std::fmt;
use std::sync::Arc;

use hapax_core::{Fence, Fenced, Key, RecordId};

use super::calls::Calls;
use super::lease::HeldLease;

/// Handed to the work: its fence, its keys for downstream calls, and whether it still owns what it works on.
#[derive(Clone, Debug)]
pub struct Context {
    held: Arc<HeldLease>,
    calls: Calls,
}

/// The attempt's lease lapsed or was taken by another attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeaseLost;

impl fmt::Display for LeaseLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the lease of this attempt was lost")
    }
}

impl std::error::Error for LeaseLost {}

impl Context {
    pub(super) fn new(held: Arc<HeldLease>, calls: Calls) -> Self {
        Self { held, calls }
    }

    /// The record this run works for.
    pub fn id(&self) -> RecordId {
        self.held.lease.id
    }

    /// The attempt's fence. Its number grows with every attempt, so a downstream system can refuse an older one.
    pub fn fence(&self) -> Fence {
        self.held.lease.fence
    }

    /// 1 for the first attempt.
    pub fn attempt(&self) -> u32 {
        self.fence().attempt
    }

    /// A stable key for one downstream call: the same for every attempt at this operation, different for every
    /// step and every operation. Send it as the downstream `Idempotency-Key`.
    pub fn effect_key(&self, step: &str) -> Key {
        Key::derive(&self.id().to_string(), step, None)
            .expect("without parameters there is nothing to refuse")
    }

    /// Notes which upstream the run is about to call, such as its address: the log line about a record that becomes
    /// uncertain names the last one.
    pub fn calls_upstream(&self, upstream: Arc<str>) {
        self.held.calls_upstream(upstream);
    }

    /// Whether this attempt may no longer own its record, as far as this process knows without asking.
    pub fn is_lease_doubtful(&self) -> bool {
        self.held.is_doubtful()
    }

    /// Asks the store whether this attempt still owns its record, and renews its lease. Worth doing before a step
    /// that cannot be taken back after a long pause.
    ///
    /// # Errors
    /// [`LeaseLost`] when it does not, or when the store cannot answer.
    pub async fn confirm(&self) -> Result<(), LeaseLost> {
        match self.held.renew(&self.calls).await {
            Ok(Fenced::Applied) if !self.held.is_doubtful() => Ok(()),
            _ => Err(LeaseLost),
        }
    }
}
