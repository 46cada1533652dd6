//! Claims that nothing will run for, and how they are given up: behind the caller's back where that takes longer.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hapax_core::{ClaimRequest, Fence, Fenced, Lease, Lookup, OnLapse, State, StoreError};

use super::{Engine, RECORD_TRIES, RECORD_TRIES_BEHIND};

/// How it stands with a key whose claim is given up.
enum Standing {
    /// Nobody has a claim or an outcome.
    Free,
    /// The claim is there after all.
    Arrived,
    /// It is somebody else's, or nobody knows.
    Elses,
}

impl Engine {
    /// Releases a claim that may stand although nothing will run for it.
    pub(super) async fn give_up(self: &Arc<Self>, lease: Lease) {
        if self.release_unrun(&lease, RECORD_TRIES).await.is_err() {
            self.give_up_behind(lease);
        }
    }

    fn give_up_behind(self: &Arc<Self>, lease: Lease) {
        let engine = self.clone();
        // Should it never succeed, the lease lapses, and the record tells that nobody knows.
        self.tasks.spawn(async move { engine.release_unrun(&lease, RECORD_TRIES_BEHIND).await });
    }

    /// The same for a claim that was never answered. It may also arrive only later, as when the server of the store stood
    /// still, and find the key free. So where there is nothing yet, it is made and released: one that is known to be
    /// released is refused. While the process is draining, none is made.
    pub(super) fn give_up_unanswered(self: &Arc<Self>, ask: ClaimRequest) {
        let engine = self.clone();
        self.tasks.spawn(async move {
            let lease = unused(&ask);
            let Ok(Fenced::Lost) = engine.release_unrun(&lease, RECORD_TRIES_BEHIND).await else { return };
            match engine.standing(&lease).await {
                Standing::Arrived => {}
                Standing::Free if !engine.draining.load(Ordering::SeqCst) => {
                    // Never in the place of somebody who came in between, whatever the policy would allow.
                    let ask = ClaimRequest { on_lapse: OnLapse::Uncertain, ..ask };
                    let claim = || engine.calls.store.claim(&ask);
                    // Whatever came of it, and nothing if it is not there.
                    let time = engine.calls.within(ask.lease);
                    let _ = engine.calls.insist("claim", time, RECORD_TRIES, claim).await;
                }
                Standing::Free | Standing::Elses => return,
            }
            let _ = engine.release_unrun(&lease, RECORD_TRIES_BEHIND).await;
        });
    }

    async fn standing(&self, lease: &Lease) -> Standing {
        let get = || self.calls.store.get(&lease.id);
        match self.calls.insist("get", self.calls.within(lease.length), RECORD_TRIES, get).await {
            Ok(Lookup::Absent) => Standing::Free,
            Ok(Lookup::Found { record, .. }) if record.fence.nonce == lease.fence.nonce => Standing::Arrived,
            Ok(Lookup::Found { record, now }) if record.state_at(now) == State::Released => Standing::Free,
            _ => Standing::Elses,
        }
    }

    async fn release_unrun(&self, lease: &Lease, tries: u32) -> Result<Fenced, StoreError> {
        let release = || self.calls.store.release(lease, None);
        let released = self.calls.insist("release", self.calls.within(lease.length), tries, release).await;
        self.waiters.wake(&lease.id);
        released
    }
}

/// The lease of a claim that was asked for and will not be used. Its attempt number was never told and is not
/// looked at: the nonce decides.
pub(super) fn unused(ask: &ClaimRequest) -> Lease {
    Lease { id: ask.key.id, fence: Fence { nonce: ask.nonce, attempt: 0 }, length: ask.lease }
}
