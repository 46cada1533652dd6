//! Heartbeat: renews every lease of this process at a third of its length, and records which ones were lost. It also
//! lists what runs without a claim, so that one process does not run the same operation with a claim and without.
//!
//! The leases are kept by one task of their own. By default it has its own thread and runtime, so that handlers
//! which block every worker of the user's runtime cannot make their own leases lapse.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use hapax_core::{Fenced, Lease, Reason, RecordId, StoreError};
use hashbrown::HashSet;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Operation;
use super::calls::Calls;
use crate::observe;

/// How many attempts are remembered as reported uncertain.
const REPORTED_MAX: usize = 4096;

/// All leases this process holds.
#[derive(Debug)]
pub(crate) struct Leases {
    slots: Mutex<Slots>,
    started: Instant,
    /// When the keeper wakes next, in milliseconds since `started`; a lease due earlier wakes it before.
    wakes_at_ms: AtomicU64,
    nudge: Notify,
    idle_pause: Duration,
    /// Attempts that were reported as uncertain.
    reported: Mutex<HashSet<(RecordId, u32)>>,
}

#[derive(Debug, Default)]
struct Slots {
    held: Vec<Option<Arc<HeldLease>>>,
    free: Vec<usize>,
    unclaimed: HashSet<RecordId>,
}

/// One lease and what its owner should know about it.
#[derive(Debug)]
pub(crate) struct HeldLease {
    pub(crate) lease: Lease,
    leases: Arc<Leases>,
    /// When to stop renewing; never, when that is beyond all time.
    renewed_until: Option<Instant>,
    /// When the claim was last known to stand: the moment before the call that confirmed it was sent.
    confirmed_ms: AtomicU64,
    next_ms: AtomicU64,
    renewing: AtomicBool,
    lost: AtomicBool,
    reported: AtomicBool,
    label: Option<Arc<str>>,
    /// The upstream that the run called last.
    upstream: Mutex<Option<Arc<str>>>,
}

/// A lease is renewed as long as this exists.
#[derive(Debug)]
pub(crate) struct Hold {
    slot: usize,
    pub(crate) held: Arc<HeldLease>,
}

/// An operation runs without a claim as long as this exists.
#[cfg(feature = "http")]
#[derive(Debug)]
pub(crate) struct Unclaimed {
    id: RecordId,
    leases: Arc<Leases>,
}

impl Leases {
    /// `usual` is the length of most leases; the keeper wakes three times within it.
    pub(crate) fn new(usual: Duration) -> Self {
        Self {
            slots: Mutex::default(),
            started: Instant::now(),
            wakes_at_ms: AtomicU64::new(0),
            nudge: Notify::new(),
            idle_pause: usual / 3,
            reported: Mutex::default(),
        }
    }

    /// Renews `lease`, which was valid at `asked_at`, until the hold is dropped or `run_max` is over. None where this
    /// process runs the operation without a claim.
    pub(crate) fn hold(
        self: &Arc<Self>,
        lease: Lease,
        asked_at: Instant,
        operation: &Operation,
    ) -> Option<Hold> {
        let confirmed_ms = self.ms(asked_at);
        let next_ms = confirmed_ms + ms(lease.length / 3);
        let held = Arc::new(HeldLease {
            lease,
            leases: self.clone(),
            renewed_until: asked_at.checked_add(operation.policy.run_max),
            confirmed_ms: AtomicU64::new(confirmed_ms),
            next_ms: AtomicU64::new(next_ms),
            renewing: AtomicBool::new(false),
            lost: AtomicBool::new(false),
            reported: AtomicBool::new(false),
            label: operation.label.clone(),
            upstream: Mutex::default(),
        });
        let slot = self.slots.lock().put(held.clone())?;
        self.nudge_before(next_ms);
        Some(Hold { slot, held })
    }

    /// Whether this attempt was not reported as uncertain yet. Of very many, some may be reported again.
    pub(crate) fn is_first_report(&self, id: RecordId, attempt: u32) -> bool {
        let mut reported = self.reported.lock();
        if reported.len() >= REPORTED_MAX {
            reported.clear();
        }
        reported.insert((id, attempt))
    }

    /// Lets an operation run without a claim. None where this process already runs it, with a claim or without, or has
    /// yet to record its outcome.
    #[cfg(feature = "http")]
    pub(crate) fn begin_unclaimed(self: &Arc<Self>, id: RecordId) -> Option<Unclaimed> {
        let mut slots = self.slots.lock();
        let is_held = slots.held.iter().flatten().any(|held| held.lease.id == id);
        (!is_held && slots.unclaimed.insert(id)).then(|| Unclaimed { id, leases: self.clone() })
    }

    /// Renews what is due, until `stop`.
    pub(crate) async fn keep(self: Arc<Self>, calls: Calls, stop: CancellationToken) {
        loop {
            let pause = self.plan();
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = self.nudge.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
            for held in self.due() {
                let calls = calls.clone();
                tokio::spawn(async move { held.renew(&calls).await });
            }
        }
    }

    /// How long nothing will be due.
    fn plan(&self) -> Duration {
        let now_ms = self.ms(Instant::now());
        let slots = self.slots.lock();
        let first = slots.held.iter().flatten().map(|held| held.next_ms.load(Ordering::Acquire)).min();
        let wakes_at = first.unwrap_or(u64::MAX).min(now_ms + ms(self.idle_pause));
        // Stored under the lock: a lease that comes later compares with it after it has taken its slot.
        self.wakes_at_ms.store(wakes_at, Ordering::Release);
        Duration::from_millis(wakes_at.saturating_sub(now_ms).max(1))
    }

    fn due(&self) -> Vec<Arc<HeldLease>> {
        let now = Instant::now();
        let now_ms = self.ms(now);
        let slots = self.slots.lock();
        let due = slots.held.iter().flatten().filter(|held| held.next_ms.load(Ordering::Acquire) <= now_ms);
        due.filter(|held| held.is_to_be_renewed(now)).cloned().collect()
    }

    /// Wakes the keeper if it would sleep through this moment.
    fn nudge_before(&self, due_ms: u64) {
        if due_ms < self.wakes_at_ms.load(Ordering::Acquire) {
            self.nudge.notify_one();
        }
    }

    fn ms(&self, at: Instant) -> u64 {
        ms(at.saturating_duration_since(self.started))
    }
}

impl Slots {
    fn put(&mut self, held: Arc<HeldLease>) -> Option<usize> {
        if self.unclaimed.contains(&held.lease.id) {
            return None;
        }
        match self.free.pop() {
            Some(slot) => {
                self.held[slot] = Some(held);
                Some(slot)
            }
            None => {
                self.held.push(Some(held));
                Some(self.held.len() - 1)
            }
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut slots = self.held.leases.slots.lock();
        slots.held[self.slot] = None;
        slots.free.push(self.slot);
    }
}

#[cfg(feature = "http")]
impl Drop for Unclaimed {
    fn drop(&mut self) {
        self.leases.slots.lock().unclaimed.remove(&self.id);
    }
}

impl HeldLease {
    /// Whether the lease is certainly no longer this attempt's, or may have lapsed by this process's own clock.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.lost.load(Ordering::Acquire) || self.is_lapsed(Instant::now())
    }

    fn is_lapsed(&self, now: Instant) -> bool {
        let confirmed_ms = self.confirmed_ms.load(Ordering::Acquire);
        self.leases.ms(now).saturating_sub(confirmed_ms) >= ms(self.lease.length)
    }

    /// Asks the store to renew the lease. Only [`Fenced::Applied`] says that the record is still this attempt's.
    pub(crate) async fn renew(&self, calls: &Calls) -> Result<Fenced, StoreError> {
        let asked_at = Instant::now();
        let lease = &self.lease;
        let fenced = calls.once("renew", calls.within(lease.length), calls.store.renew(lease)).await;
        let asked_ms = self.leases.ms(asked_at);
        let next_ms = match fenced {
            Ok(Fenced::Applied) => {
                self.confirmed_ms.fetch_max(asked_ms, Ordering::AcqRel);
                asked_ms + ms(lease.length / 3)
            }
            Ok(Fenced::Lost) => {
                self.lost.store(true, Ordering::Release);
                self.report_lost();
                u64::MAX
            }
            Err(_) => {
                if self.is_lapsed(Instant::now()) {
                    self.report_lost();
                }
                // Soon again: eight tries fit into the two thirds of the lease that are left.
                self.leases.ms(Instant::now()) + ms(lease.length / 12).max(1)
            }
        };
        self.next_ms.store(next_ms, Ordering::Release);
        self.renewing.store(false, Ordering::Release);
        self.leases.nudge_before(next_ms);
        fenced
    }

    fn is_to_be_renewed(&self, now: Instant) -> bool {
        let is_over = self.renewed_until.is_some_and(|until| now >= until);
        if is_over || self.lost.load(Ordering::Acquire) {
            if is_over {
                self.report_lapse("a run takes longer than run_max; its lease lapses");
            }
            // Never due again. The run goes on; its outcome is recorded if the record still holds its nonce.
            self.next_ms.store(u64::MAX, Ordering::Release);
            return false;
        }
        if self.renewing.swap(true, Ordering::AcqRel) {
            return false;
        }
        // Not due while it is being renewed, or the keeper would wake at once; the end of the renewal sets when it is.
        self.next_ms.store(u64::MAX, Ordering::Release);
        true
    }

    /// Reports once that the lease was lost.
    pub(crate) fn report_lost(&self) {
        if !self.reported.swap(true, Ordering::AcqRel) {
            observe::lease_lost();
            self.report_lapse("lease lost while its run goes on");
        }
    }

    fn report_lapse(&self, what: &'static str) {
        let Lease { id, fence, .. } = &self.lease;
        if self.leases.is_first_report(*id, fence.attempt) {
            observe::lapses(id, fence.attempt, self.label.as_deref(), self.upstream.lock().as_deref(), what);
        }
    }

    /// Reports that the record becomes uncertain, unless that was reported.
    pub(crate) fn report_uncertain(&self, reason: Reason) {
        let Lease { id, fence, .. } = &self.lease;
        if self.leases.is_first_report(*id, fence.attempt) {
            let (label, upstream) = (self.label.as_deref(), self.upstream.lock());
            observe::became_uncertain(id, fence.attempt, label, reason, upstream.as_deref());
        }
    }

    pub(crate) fn calls_upstream(&self, upstream: Arc<str>) {
        *self.upstream.lock() = Some(upstream);
    }
}

fn ms(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
