//! Bounded waiting of a duplicate for the first one's result.
//!
//! Waiters of one key share one poller, whatever their number, and are woken at once when the owner is in this
//! process or the store pushes. A waiter that is woken claims again; it never infers from being woken that
//! anything happened.

use std::sync::Arc;
use std::time::Duration;

use hapax_core::{Lookup, RecordId, State};
use hashbrown::HashMap;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;
use tokio::time::Instant;

use super::calls::Calls;
use crate::observe::{self, Present};

/// How many may wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) per_key: usize,
    pub(crate) in_all: usize,
}

/// All waiting duplicates of this process.
#[derive(Debug)]
pub(crate) struct Waiters {
    keys: Mutex<Keys>,
    limits: Limits,
    poll: Duration,
    calls: Calls,
}

#[derive(Debug, Default)]
struct Keys {
    by_id: HashMap<RecordId, Waited>,
    in_all: usize,
}

#[derive(Debug)]
struct Waited {
    changed: Arc<Notify>,
    /// Ends the poller when the last waiter leaves.
    deserted: Arc<Notify>,
    waiters: usize,
}

/// One of the waiters for a key.
pub(crate) struct WaitSlot {
    waiters: Arc<Waiters>,
    id: RecordId,
    changed: Arc<Notify>,
    next: std::pin::Pin<Box<OwnedNotified>>,
    _present: Present,
}

impl Waiters {
    pub(crate) fn new(calls: Calls, poll: Duration, limits: Limits) -> Self {
        Self { keys: Mutex::default(), limits, poll, calls }
    }

    /// Takes a slot; none when too many are waiting already.
    ///
    /// Changes from now on are not missed: after joining, the key is claimed once more before the first wait.
    pub(crate) fn join(self: &Arc<Self>, id: RecordId) -> Option<WaitSlot> {
        let mut keys = self.keys.lock();
        let already = keys.by_id.get(&id).map_or(0, |waited| waited.waiters);
        if keys.in_all >= self.limits.in_all || already >= self.limits.per_key {
            return None;
        }
        let is_first = already == 0;
        let waited = keys.by_id.entry(id).or_insert_with(|| Waited {
            changed: Arc::new(Notify::new()),
            deserted: Arc::new(Notify::new()),
            waiters: 0,
        });
        waited.waiters += 1;
        let changed = waited.changed.clone();
        if is_first {
            tokio::spawn(poll(self.clone(), id, changed.clone(), waited.deserted.clone()));
        }
        keys.in_all += 1;
        let next = listen(&changed);
        Some(WaitSlot {
            waiters: self.clone(),
            id,
            changed,
            next,
            _present: Present::in_gauge(observe::WAITERS),
        })
    }

    /// Notifies the waiters for `id` that its record changed.
    pub(crate) fn wake(&self, id: &RecordId) {
        let keys = self.keys.lock();
        if keys.in_all == 0 {
            return;
        }
        if let Some(waited) = keys.by_id.get(id) {
            waited.changed.notify_waiters();
        }
    }

    fn leave(&self, id: &RecordId) {
        let mut keys = self.keys.lock();
        keys.in_all -= 1;
        if let Some(waited) = keys.by_id.get_mut(id) {
            waited.waiters -= 1;
            if waited.waiters == 0 {
                waited.deserted.notify_one();
                keys.by_id.remove(id);
            }
        }
    }
}

impl WaitSlot {
    /// Waits for a change; false when `until` came first.
    pub(crate) async fn changed(&mut self, until: Instant) -> bool {
        let is_changed = tokio::time::timeout_at(until, self.next.as_mut()).await.is_ok();
        if is_changed {
            self.next = listen(&self.changed);
        }
        is_changed
    }
}

impl Drop for WaitSlot {
    fn drop(&mut self) {
        self.waiters.leave(&self.id);
    }
}

fn listen(changed: &Arc<Notify>) -> std::pin::Pin<Box<OwnedNotified>> {
    let mut next = Box::pin(changed.clone().notified_owned());
    next.as_mut().enable();
    next
}

/// Reads the record until its last waiter leaves: when the store reports a change, and at intervals because such a
/// report may be lost.
async fn poll(waiters: Arc<Waiters>, id: RecordId, changed: Arc<Notify>, deserted: Arc<Notify>) {
    let calls = &waiters.calls;
    loop {
        let pushed = async {
            match calls.store.watch(&id) {
                Some(change) => change.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = deserted.notified() => return,
            () = pushed => {}
            () = tokio::time::sleep(waiters.poll) => {}
        }
        let lookup = calls.once("get", calls.timeout, calls.store.get(&id)).await;
        let is_in_progress = matches!(
            &lookup,
            Ok(Lookup::Found { record, now }) if record.state_at(*now) == State::InProgress
        );
        if lookup.is_ok() && !is_in_progress {
            changed.notify_waiters();
        }
    }
}
