//! What is known about a key without a claim: a finished outcome, and whether there is a record at all.

#[cfg(feature = "http")]
use hapax_core::transition::may_take_over;
use hapax_core::{Fingerprint, Lookup, RecordId, Recorded, State, Status};

#[cfg(feature = "http")]
use super::RETRY_AFTER_MAX;
use super::cache::Recalled;
use super::{Engine, RECORD_TRIES, Refusal};
#[cfg(feature = "http")]
use crate::policy::Policy;

impl Engine {
    /// What memory holds of a finished operation. It is answered without a claim, also while draining.
    pub(crate) fn recall(&self, id: &RecordId, fingerprint: &Fingerprint) -> Option<Recalled> {
        let in_store = || self.calls.recall(id, fingerprint).map(Recalled::Replay);
        self.facts.recall(id, fingerprint).or_else(in_store)
    }

    /// Whether there is a record which a claim may be answered from. A hint; the claim decides.
    pub(crate) async fn remembers(&self, id: &RecordId) -> Result<bool, Refusal> {
        let lookup = self.calls.once("get", self.calls.timeout, self.calls.store.get(id)).await;
        match lookup.map_err(Refusal::StoreFailed)? {
            Lookup::Absent => Ok(false),
            Lookup::Found { record, now } => Ok(record.state_at(now) != State::Released
                && (!record.state().is_terminal() || record.expires_at > now)),
            Lookup::Unreadable { .. } => Ok(true),
        }
    }

    /// Why a claim by this policy would be refused now, whatever its fingerprint, as far as the record shows. A hint
    /// that spares clients the sending of a body; the claim decides.
    #[cfg(feature = "http")]
    pub(crate) async fn refusal_before_claim(&self, id: RecordId, policy: &Policy) -> Option<Refusal> {
        let lookup = self.calls.once("get", self.calls.timeout, self.calls.store.get(&id)).await;
        let Ok(Lookup::Found { record, now }) = lookup else { return None };
        match (record.state_at(now), &record.status) {
            (State::InProgress, Status::InProgress { lease_until }) => {
                let lease_left = lease_until.since(now);
                Some(Refusal::InProgress { retry_after: lease_left.min(RETRY_AFTER_MAX), lease_left })
            }
            (State::Uncertain, Status::Uncertain { reason })
                if !may_take_over(&record, policy.on_lapse, policy.attempts_max) =>
            {
                Some(Refusal::Uncertain { id, reason: *reason })
            }
            _ => None,
        }
    }

    /// The outcome of the attempt that took the record over: it is the answer, not what the superseded run made.
    pub(super) async fn outcome_of_successor(
        &self,
        id: RecordId,
        fingerprint: &Fingerprint,
    ) -> Result<Recorded, Refusal> {
        let get = || self.calls.store.get(&id);
        // A store that cannot answer now does not change that the operation ran and was superseded: this is not a
        // refusal of the store.
        let lookup = self.calls.insist("get", self.calls.timeout, RECORD_TRIES, get).await;
        if let Ok(Lookup::Found { record, .. }) = lookup
            && record.fingerprint.matches(fingerprint) == Some(true)
            && let Status::Pinned { recorded } = record.status
        {
            return Ok(recorded);
        }
        Err(Refusal::Superseded { id })
    }
}
