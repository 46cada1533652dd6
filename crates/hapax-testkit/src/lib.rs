//! Tools for authors of Hapax stores, and of programs that use one: conformance rules, a store with injected faults,
//! and a checker of histories.
//!
//! # How to test your store in ten lines
//!
//! Describe how to make an empty store and how to advance its clock; the suite has one test per rule. In
//! `tests/it/main.rs` of your crate:
//!
//! ```
//! # use hapax_testkit::ReferenceStore as MyStore;
//! use std::{sync::Arc, time::Duration};
//! use hapax_core::{ManualClock, Store};
//! use hapax_testkit::Rig;
//!
//! struct MyRig { clock: ManualClock, store: Arc<MyStore> }
//!
//! async fn my_rig() -> MyRig {
//!     let clock = ManualClock::new();
//!     MyRig { store: Arc::new(MyStore::new(clock.clone())), clock }
//! }
//!
//! impl Rig for MyRig {
//!     fn store(&self) -> Arc<dyn Store> { self.store.clone() }
//!     async fn advance(&self, span: Duration) { self.clock.advance(span); }
//! }
//!
//! hapax_testkit::store_suite!(my_rig);
//! # fn main() {}
//! ```
//!
//! A store that uses its server's clock waits in `advance` and sets [`Rig::facts`] accordingly, with a short lease.
//! [`Rig::small_store`] and [`Rig::damage`] let further rules be tested.
//!
//! A failed rule is a failed test: `store_suite::fences::a_takeover_fences_the_first_owner_out` names its module
//! ([`store_suite::fences`]) and its function. Compare with [`ReferenceStore`], which is the contract as code.
//!
//! | environment variable | what it sets |
//! |---|---|
//! | `HAPAX_SUITE_MODEL_RUNS` | how many random sequences are compared with the transition function |
//! | `HAPAX_SUITE_SEED` | which sequences |
//! | `HAPAX_SUITE_RACE_ROUNDS` | how many rounds each race is run |
//!
//! # How to test what uses a store
//!
//! [`Faulty`] stands between one process and its store and injects faults into calls by a [`Plan`]: an error, a lost
//! answer, a delay, a panic, a dropped caller, a crash. [`TokioClock`] lets leases lapse in a runtime whose time is
//! paused. [`Recording`] records every call in a [`History`], and
//! [`History::check`] checks it: is there one order of calls that explains every answer, and did every operation take
//! effect at most as often as promised?
//!
//! # How to test an HTTP server
//!
//! With the feature `http`, `http_suite` plays the cases of `spec/cases/http` against anything that serves an origin
//! behind a layer or a proxy, over real sockets.
//!
//! # How to test a consumer of events
//!
//! With the feature `events`, `events::MemoryBroker` is a broker in memory that delivers again what is not acknowledged, and
//! fails by script. `events::Duplicator` delivers twice, in a random order, what any other source delivers.
//!
//! # How to test against a real server
//!
//! With the feature `servers`, `servers` starts installed servers, each in its own directory, and kills them on drop. Where
//! the test sets the server's clock, the suite need not wait for leases to lapse.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod clock;
#[cfg(feature = "events")]
pub mod events;
mod faulty;
mod history;
#[cfg(feature = "http")]
pub mod http_suite;
mod op;
pub mod operations;
mod random;
mod reference;
mod rig;
#[cfg(feature = "servers")]
pub mod servers;
pub mod store_suite;

pub use clock::TokioClock;
pub use faulty::{Fault, Faulty, Fired, ObservedCall, Plan, Point};
pub use history::{Checked, History, Recording, Reply, Request, Rule, Ticket, Violation};
pub use op::Op;
pub use random::Random;
pub use reference::ReferenceStore;
pub use rig::{Facts, Removal, Rig, Time};
