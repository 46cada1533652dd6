//! [`Gate`]: whether a simulated process is alive, paused or cut off from its callers.
//!
//! Everything that a process does to the world passes its gate: store calls on their way out and back, and the
//! effects of its handlers. So a dead process can do nothing more, and a paused one nothing for a while.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::OVER_A_LEASE;
use super::clock::millis;
use super::event::{Event, Kind, ProcessId};
use super::journal::Ground;

/// What goes wrong inside a handler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trap {
    /// It ends with an error that asks for a retry.
    Retry,
    /// It ends not knowing.
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
    /// Everything stands still for more than a lease.
    Freeze,
}

impl Trap {
    /// Every trap.
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

    /// Under which kind of fault it is counted.
    pub const fn kind(self) -> Kind {
        match self {
            Self::Retry => Kind::Error,
            Self::Unknown => Kind::Lost,
            Self::Slow => Kind::Delay,
            Self::HangUp => Kind::Drop,
            Self::Panic => Kind::Panic,
            Self::Crash => Kind::Crash,
            Self::StepStore | Self::Freeze => Kind::Step,
        }
    }
}

/// Where a process meets the world.
#[derive(Debug)]
pub struct Gate {
    /// Whose gate it is.
    pub process: ProcessId,
    /// What the process stands on.
    pub ground: Arc<Ground>,
    is_dead: AtomicBool,
    paused_until: Mutex<Instant>,
    hang_up: Notify,
    moments: AtomicU64,
    trap: Mutex<Option<(u64, Trap)>>,
    is_sprung: AtomicBool,
    is_healed: AtomicBool,
}

impl Gate {
    /// The gate of a process that is alive.
    pub fn new(process: ProcessId, ground: Arc<Ground>) -> Self {
        Self {
            process,
            ground,
            is_dead: AtomicBool::new(false),
            paused_until: Mutex::new(Instant::now()),
            hang_up: Notify::new(),
            moments: AtomicU64::new(0),
            trap: Mutex::new(None),
            is_sprung: AtomicBool::new(false),
            is_healed: AtomicBool::new(false),
        }
    }

    /// Waits until the process is awake; for ever when it is dead.
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

    /// The process does nothing for `span`.
    pub fn pause(&self, span: Duration) {
        self.ground.note(Event::Paused { process: self.process, pause_ms: millis(span) });
        *self.paused_until.lock() = Instant::now() + span;
    }

    /// The process dies. Its callers are gone with it.
    pub fn crash(&self) {
        if !self.is_dead.swap(true, Ordering::Relaxed) {
            self.ground.died(self.process);
            self.hang_up.notify_waiters();
        }
    }

    /// Whether the process is dead.
    pub fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::Relaxed)
    }

    /// Drops everybody who waits for an answer of this process.
    pub fn hang_up(&self) {
        self.hang_up.notify_waiters();
    }

    /// Ends when the callers are dropped, from now on.
    pub fn hung_up(&self) -> tokio::sync::futures::Notified<'_> {
        self.hang_up.notified()
    }

    /// Sets a trap at the nth moment, counted from 1, at which a handler of this process asks.
    pub fn set_trap(&self, nth: u64, trap: Trap) {
        *self.trap.lock() = Some((nth, trap));
    }

    /// Whether the trap was sprung, or the deed done.
    pub fn is_sprung(&self) -> bool {
        self.is_sprung.load(Ordering::Relaxed)
    }

    /// A moment in a handler at which something may go wrong: what was set for it, or what the handler itself
    /// has planned.
    pub fn moment(&self, planned: Option<Trap>) -> Option<Trap> {
        let moment = self.moments.fetch_add(1, Ordering::Relaxed) + 1;
        if self.is_healed.load(Ordering::Relaxed) {
            return None;
        }
        let set = self.trap.lock().filter(|(nth, _)| *nth == moment).map(|(_, trap)| trap);
        if set.is_some() {
            self.spring();
        }
        set.or(planned)
    }

    /// Notes that the one thing that was to go wrong here did.
    pub fn spring(&self) {
        self.is_sprung.store(true, Ordering::Relaxed);
    }

    /// From here on nothing goes wrong.
    pub fn heal(&self) {
        self.is_healed.store(true, Ordering::Relaxed);
        *self.paused_until.lock() = Instant::now();
    }

    /// The store's clock jumps by more than a lease.
    pub fn step_store(&self) {
        self.ground.note(Event::Stepped { store_ms: millis(OVER_A_LEASE) });
        self.ground.clock.step(OVER_A_LEASE);
    }

    /// Everything stands still for more than a lease.
    pub fn freeze(&self) {
        self.ground.note(Event::Stepped { store_ms: 0 });
        self.ground.clock.freeze(OVER_A_LEASE);
    }
}
