//! [`Gate`]: whether a simulated process is alive, paused or cut off from its callers.
//!
//! Store calls, in both directions, and the effects of handlers pass the gate of their process. So a dead process has no
//! more effects, and a paused one none for a while.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::OVER_A_LEASE;
use super::clock::millis;
use super::event::{Event, FaultKind, ProcessId};
use super::trace::TracedStore;

/// A fault inside a handler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HandlerFault {
    /// It ends with an error that asks for a retry.
    Retry,
    /// It ends with an unknown outcome.
    Unknown,
    /// It takes longer than a lease.
    Slow,
    /// Its callers hang up.
    HangUp,
    /// It panics.
    Panic,
    /// Its process dies.
    Crash,
    /// The store's clock jumps.
    StepStore,
    /// All clocks jump by more than a lease, and nothing runs meanwhile.
    Freeze,
}

impl HandlerFault {
    /// Every fault.
    pub const ALL: [Self; 8] = [
        Self::Retry,
        Self::Unknown,
        Self::Slow,
        Self::HangUp,
        Self::Panic,
        Self::Crash,
        Self::StepStore,
        Self::Freeze,
    ];

    /// The kind that it is counted as.
    pub const fn kind(self) -> FaultKind {
        match self {
            Self::Retry => FaultKind::Error,
            Self::Unknown => FaultKind::Lost,
            Self::Slow => FaultKind::Delay,
            Self::HangUp => FaultKind::Drop,
            Self::Panic => FaultKind::Panic,
            Self::Crash => FaultKind::Crash,
            Self::StepStore | Self::Freeze => FaultKind::ClockStep,
        }
    }
}

/// Controls all effects of one process.
#[derive(Debug)]
pub struct Gate {
    /// The process.
    pub process: ProcessId,
    /// The shared store.
    pub traced: Arc<TracedStore>,
    is_dead: AtomicBool,
    paused_until: Mutex<Instant>,
    hang_up: Notify,
    moments: AtomicU64,
    trap: Mutex<Option<(u64, HandlerFault)>>,
    is_injected: AtomicBool,
    is_healed: AtomicBool,
}

impl Gate {
    /// The gate of a process that is alive.
    pub fn new(process: ProcessId, traced: Arc<TracedStore>) -> Self {
        Self {
            process,
            traced,
            is_dead: AtomicBool::new(false),
            paused_until: Mutex::new(Instant::now()),
            hang_up: Notify::new(),
            moments: AtomicU64::new(0),
            trap: Mutex::new(None),
            is_injected: AtomicBool::new(false),
            is_healed: AtomicBool::new(false),
        }
    }

    /// Waits until the process is not paused; for ever when it is dead.
    pub async fn open(&self) {
        loop {
            if self.is_dead() {
                pending::<()>().await;
            }
            let until = *self.paused_until.lock();
            if until <= Instant::now() {
                return;
            }
            sleep_until(until).await;
        }
    }

    /// Pauses the process for `span`.
    pub fn pause(&self, span: Duration) {
        self.traced.note(Event::Paused { process: self.process, pause_ms: millis(span) });
        *self.paused_until.lock() = Instant::now() + span;
    }

    /// The process dies, and its callers with it.
    pub fn crash(&self) {
        if !self.is_dead.swap(true, Ordering::Relaxed) {
            self.traced.died(self.process);
            self.hang_up.notify_waiters();
        }
    }

    /// Whether the process is dead.
    pub fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::Relaxed)
    }

    /// Drops all callers that wait for a result of this process.
    pub fn hang_up(&self) {
        self.hang_up.notify_waiters();
    }

    /// Completes when the callers are dropped, from now on.
    pub fn hung_up(&self) -> tokio::sync::futures::Notified<'_> {
        self.hang_up.notified()
    }

    /// Injects a fault at the nth fault point of this process's handlers, counted from 1.
    pub fn set_handler_fault(&self, nth: u64, trap: HandlerFault) {
        *self.trap.lock() = Some((nth, trap));
    }

    /// Whether the fault of a handler, or the injection, happened.
    pub fn is_injected(&self) -> bool {
        self.is_injected.load(Ordering::Relaxed)
    }

    /// A fault point in a handler. Returns the fault that was set for it, or the one that the handler itself has planned.
    pub fn handler_fault(&self, planned: Option<HandlerFault>) -> Option<HandlerFault> {
        let moment = self.moments.fetch_add(1, Ordering::Relaxed) + 1;
        if self.is_healed.load(Ordering::Relaxed) {
            return None;
        }
        let set = self.trap.lock().filter(|(nth, _)| *nth == moment).map(|(_, trap)| trap);
        if set.is_some() {
            self.mark_injected();
        }
        set.or(planned)
    }

    /// Records that the planned fault was injected.
    pub fn mark_injected(&self) {
        self.is_injected.store(true, Ordering::Relaxed);
    }

    /// Ends all faults.
    pub fn heal(&self) {
        self.is_healed.store(true, Ordering::Relaxed);
        *self.paused_until.lock() = Instant::now();
    }

    /// The store's clock jumps by more than a lease.
    pub fn step_store(&self) {
        self.traced.note(Event::Stepped { store_ms: millis(OVER_A_LEASE) });
        self.traced.clock.step(OVER_A_LEASE);
    }

    /// All clocks jump by more than a lease, and nothing runs meanwhile.
    pub fn freeze(&self) {
        self.traced.note(Event::Stepped { store_ms: 0 });
        self.traced.clock.freeze(OVER_A_LEASE);
    }
}
