//! Deterministic simulation: the real engine on a simulated clock, with everything going wrong that can.
//!
//! Several processes, each a `Hapax` of its own, share one memory store. Time is Tokio's paused time, everything
//! runs on one thread, and every choice follows from a seed, so a run can be repeated to the last event. Each
//! process reaches the store through three layers:
//!
//! ```text
//! Hapax ─▶ Faulty (errors, lost answers, delays, panics) ─▶ Wire (lands late, lands twice) ─▶ store and journal
//!                                                             └─ Gate (paused, dead) ─ handlers' effects
//! ```
//!
//! - [`systematic`] plays named [`scenario`]s once for every store call and every handler's moment times every
//!   kind of fault, and stops counting up where the scenario ends without the fault;
//! - [`random`] plays seeded histories of many operations, then heals the world and asks for every key;
//! - [`oracle`] reads the journal afterwards and says what may not have happened.
//!
//! # Limits
//!
//! - A paused process cannot reach the store and its handlers stand still, but its timers fire on time.
//! - The operator is truthful: it settles only when the owner is dead or its run has ended.
//! - The store itself never loses a write. What a store may lose is up to the tests of that store.

pub mod clock;
pub mod event;
pub mod gate;
pub mod journal;
pub mod oracle;
pub mod process;
pub mod quiet;
pub mod random;
pub mod report;
pub mod scenario;
pub mod systematic;
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
