//! Cancels claims that may stand although nothing will run for them, in the background where that takes longer.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hapax_core::{ClaimRequest, Fence, Fenced, Lease, Lookup, Nonce, OnLapse, Reason, State, StoreError};
use tokio::runtime::Handle;

use super::{Engine, RECORD_TRIES, RECORD_TRIES_BACKGROUND};

/// A claim that was sent and has no answer yet. Dropped without one, it is cancelled in the background.
pub(super) struct Unanswered<'a> {
    engine: &'a Arc<Engine>,
    ask: Option<ClaimRequest>,
    runtime: Option<Handle>,
}

/// What is recorded under a key whose claim is cancelled.
enum Standing {
    /// No claim and no outcome.
    Free,
    /// The claim, after all.
    Arrived { is_takeover: bool },
    /// Another attempt, or unknown.
    Other,
}

impl<'a> Unanswered<'a> {
    pub(super) fn new(engine: &'a Arc<Engine>, ask: ClaimRequest) -> Self {
        // A future may be dropped outside of the runtime on which it was polled.
        Self { engine, ask: Some(ask), runtime: Handle::try_current().ok() }
    }

    /// Nothing is left to be cancelled.
    pub(super) fn answered(&mut self) {
        self.runtime = None;
    }

    /// Makes another claim for the same key.
    pub(super) fn renew(&mut self) {
        if let Some(ask) = &mut self.ask {
            ask.nonce = Nonce::random();
        }
    }
}

impl Deref for Unanswered<'_> {
    type Target = ClaimRequest;

    fn deref(&self) -> &ClaimRequest {
        self.ask.as_ref().expect("only a drop takes it")
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if let (Some(runtime), Some(ask)) = (&self.runtime, self.ask.take()) {
            let engine = self.engine.clone();
            let cancel = async move { engine.cancel_unanswered(ask).await };
            self.engine.tasks.spawn_on(cancel, runtime);
        }
    }
}

impl Engine {
    /// Takes back a claim that may stand although nothing will run for it.
    pub(super) async fn cancel_claim(self: &Arc<Self>, lease: Lease, on_lapse: OnLapse) {
        if self.take_back(&lease, on_lapse, RECORD_TRIES).await.is_err() {
            let engine = self.clone();
            // Should it never succeed, the lease lapses and the record becomes uncertain.
            self.tasks
                .spawn(async move { engine.take_back(&lease, on_lapse, RECORD_TRIES_BACKGROUND).await });
        }
    }

    /// The same for a claim that was never answered. It may also arrive only later, as when the server of the store was
    /// paused, and find the key free. So where there is no record yet, it is made and released: a claim that is known to
    /// be released is refused. While the process is draining, none is made.
    async fn cancel_unanswered(self: Arc<Self>, ask: ClaimRequest) {
        let lease = unused(&ask);
        let taken_back = self.take_back(&lease, ask.on_lapse, RECORD_TRIES_BACKGROUND).await;
        let Ok(Fenced::Lost) = taken_back else { return };
        let on_lapse = ask.on_lapse;
        match self.standing(&lease, RECORD_TRIES).await {
            Ok(Standing::Arrived { .. }) => {}
            Ok(Standing::Free) if !self.draining.load(Ordering::SeqCst) => {
                // Never in the place of another attempt that came in between, whatever the policy would allow.
                let ask = ClaimRequest { on_lapse: OnLapse::Uncertain, ..ask };
                let claim = || self.calls.store.claim(&ask);
                // Its answer does not matter: the release below does nothing if it is not there.
                let _ = self.calls.insist("claim", self.calls.within(ask.lease), RECORD_TRIES, claim).await;
            }
            Ok(Standing::Free | Standing::Other) | Err(_) => return,
        }
        let _ = self.take_back(&lease, on_lapse, RECORD_TRIES_BACKGROUND).await;
    }

    /// Releases the claim. One that took over from a lost owner becomes uncertain again instead: a release would free the
    /// key for any request, and hide that the operation may have happened.
    async fn take_back(&self, lease: &Lease, on_lapse: OnLapse, tries: u32) -> Result<Fenced, StoreError> {
        let is_takeover = match on_lapse {
            OnLapse::Uncertain => false,
            // Looked up first: a release must not meet a takeover that arrives meanwhile.
            OnLapse::Rerun => match self.standing(lease, tries).await? {
                Standing::Arrived { is_takeover } => is_takeover,
                Standing::Free | Standing::Other => return Ok(Fenced::Lost),
            },
        };
        let within = self.calls.within(lease.length);
        let taken_back = if is_takeover {
            let abandon = || self.calls.store.abandon(lease, Reason::Lapsed);
            self.calls.insist("abandon", within, tries, abandon).await
        } else {
            let release = || self.calls.store.release(lease, None);
            self.calls.insist("release", within, tries, release).await
        };
        self.waiters.wake(&lease.id);
        taken_back
    }

    async fn standing(&self, lease: &Lease, tries: u32) -> Result<Standing, StoreError> {
        let get = || self.calls.store.get(&lease.id);
        let lookup = self.calls.insist("get", self.calls.within(lease.length), tries, get).await?;
        Ok(match lookup {
            Lookup::Absent => Standing::Free,
            Lookup::Found { record, .. } if record.fence.nonce == lease.fence.nonce => {
                Standing::Arrived { is_takeover: record.takeovers > 0 }
            }
            Lookup::Found { record, now } if record.state_at(now) == State::Released => Standing::Free,
            _ => Standing::Other,
        })
    }
}

/// The lease of a claim that will not be used. Its attempt number is unknown and not compared: the nonce decides.
pub(super) fn unused(ask: &ClaimRequest) -> Lease {
    Lease { id: ask.key.id, fence: Fence { nonce: ask.nonce, attempt: 0 }, length: ask.lease }
}
