//! Deterministic simulation: the real engine on a simulated clock, under every kind of fault.
//!
//! Several processes, each with its own `Hapax`, share one memory store. Time is Tokio's paused time, everything
//! runs on one thread, and every choice follows from a seed, so a run can be repeated to the last event. Each
//! process reaches the store through three layers:
//!
//! ```text
//! Hapax ─▶ Faulty (errors, lost answers, delays, panics) ─▶ Wire (late or doubled calls) ─▶ store and trace
//!                                                             └─ Gate (paused, dead) ─ handlers' effects
//! ```
//!
//! - [`systematic`] plays named [`scenario`]s once for every kind of fault at every store call and every fault point of
//!   handlers, and stops counting up where the scenario ends without the fault;
//! - [`random`] plays seeded histories of many operations, then heals the world and calls every key;
//! - [`oracle`] checks the trace afterwards.
//!
//! # Limits
//!
//! - A paused process cannot reach the store and its handlers are suspended, but its timers fire on time.
//! - The operator is truthful: it settles only when the owner is dead or its run has ended.
//! - The store itself never loses a write. Losses are left to the tests of each store.

pub mod clock;
pub mod event;
pub mod gate;
pub mod oracle;
pub mod process;
pub mod quiet;
pub mod random;
pub mod report;
pub mod scenario;
pub mod systematic;
pub mod trace;
pub mod wire;
pub mod work;
pub mod world;

use std::time::Duration;

/// The lease of every simulated claim. A multiple of twelve, so that renewals fall on whole milliseconds.
pub const LEASE: Duration = Duration::from_millis(1200);
/// How late a late call is: longer than a lease.
pub const LATE: Duration = Duration::from_millis(1800);
/// How far a clock jumps: longer than a lease.
pub const OVER_A_LEASE: Duration = Duration::from_millis(1500);
