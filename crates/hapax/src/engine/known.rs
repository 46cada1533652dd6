//! What is known about a key without a claim: what it was answered, and whether there is a record at all.

#[cfg(feature = "http")]
use hapax_core::transition::may_take_over;
use hapax_core::{Fingerprint, Lookup, RecordId, State, Status};

#[cfg(feature = "http")]
use super::RETRY_AFTER_MAX;
use super::cache::Known;
use super::{Engine, Execution, Job, RECORD_TRIES, Refusal};
#[cfg(feature = "http")]
use crate::policy::Policy;

impl Engine {
    /// What is known of a finished request without a claim. Finished is finished: this is answered also while
    /// draining, and without a place among the tasks.
    pub(crate) fn recall(&self, id: &RecordId, fingerprint: &Fingerprint) -> Option<Known> {
        let recalled = || self.calls.recall(id, fingerprint).map(Known::Replay);
        self.facts.ask(id, fingerprint).or_else(recalled)
    }

    /// Whether there is a record which a claim may be answered from. A hint; the claim decides.
    pub(crate) async fn remembers(&self, id: &RecordId) -> Result<bool, Refusal> {
        let look = self.calls.once("get", self.calls.timeout, self.calls.store.get(id)).await;
        match look.map_err(Refusal::Store)? {
            Lookup::Absent => Ok(false),
            Lookup::Found { record, now } => Ok(record.state_at(now) != State::Released
                && (!record.state().is_terminal() || record.expires_at > now)),
            Lookup::Unreadable { .. } => Ok(true),
        }
    }

    /// Why a claim by this policy would be refused now, whatever is asked for, as far as the record tells without
    /// claiming. A hint to spare callers the sending of a body; the claim decides.
    #[cfg(feature = "http")]
    pub(crate) async fn foresee(&self, id: RecordId, policy: &Policy) -> Option<Refusal> {
        let look = self.calls.once("get", self.calls.timeout, self.calls.store.get(&id)).await;
        let Ok(Lookup::Found { record, now }) = look else { return None };
        match (record.state_at(now), &record.status) {
            (State::InProgress, Status::InProgress { lease_until }) => {
                Some(Refusal::InProgress { retry_after: lease_until.since(now).min(RETRY_AFTER_MAX) })
            }
            (State::Uncertain, Status::Uncertain { reason })
                if !may_take_over(&record, policy.on_lapse, policy.attempts_max) =>
            {
                Some(Refusal::Uncertain { id, reason: *reason })
            }
            _ => None,
        }
    }

    /// Another attempt took over: what it pinned is the answer, not what this one made.
    pub(super) async fn truth<V>(&self, job: &Job) -> Result<Execution<V>, Refusal> {
        let id = job.key.id;
        let get = || self.calls.store.get(&id);
        // A store that cannot say now changes nothing about having run and lost: not a refusal of the store.
        let look = self.calls.insist("get", self.calls.timeout, RECORD_TRIES, get).await;
        if let Ok(Lookup::Found { record, .. }) = look
            && record.fingerprint.matches(&job.fingerprint) == Some(true)
            && let Status::Pinned { recorded } = record.status
        {
            return Ok(Execution::Replayed(recorded));
        }
        Err(Refusal::Superseded { id })
    }
}
