//! For everybody who writes a Hapax store, or something that uses one: rules to be held to, a store that goes
//! wrong on demand, and a judge of what happened.
//!
//! # How to test your store in ten lines
//!
//! Say how to make an empty store and how to let its time pass; the suite does the rest, one test per rule. In
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
//! A store whose server has the clock waits in `advance` and says so in [`Rig::facts`], with a short lease. There
//! it also says what else is special; [`Rig::small_store`] and [`Rig::damage`] let further rules be tested.
//!
//! A rule that fails is named: `store_suite::fences::a_takeover_fences_the_first_owner_out` tells where to read
//! ([`store_suite::fences`]) and what to look for. Compare with [`ReferenceStore`], which is the contract as code.
//!
//! | environment variable | what it sets |
//! |---|---|
//! | `HAPAX_SUITE_MODEL_RUNS` | how many random sequences are compared with the transition function |
//! | `HAPAX_SUITE_SEED` | which sequences |
//! | `HAPAX_SUITE_RACE_ROUNDS` | how many rounds each race is run |
//!
//! # How to test what uses a store
//!
//! [`Faulty`] stands between one process and its store and does to each call what a [`Plan`] says: fail, lose the
//! answer, rest, panic, have the caller dropped, die. [`TokioClock`] lets leases lapse in a runtime whose time is
//! paused. [`Recording`] writes every call down in a [`History`], and
//! [`History::check`] judges it: is there one order of calls that explains every answer, and was everything done
//! at most as often as was promised?
//!
//! # How to test an HTTP server
//!
//! With the feature `http`, `http_suite` plays the cases of `spec/cases/http` against anything that serves an origin
//! behind a layer or a proxy, over real sockets.
//!
//! # How to test against a real server
//!
//! With the feature `servers`, `servers` starts what is installed, in a directory of its own, and ends it. A server that
//! can be given a clock of its own makes time pass at once, so that the suite need not wait for leases to lapse.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod asking;
mod clock;
mod faulty;
mod history;
#[cfg(feature = "http")]
pub mod http_suite;
mod op;
mod random;
mod reference;
mod rig;
#[cfg(feature = "servers")]
pub mod servers;
pub mod store_suite;

pub use clock::TokioClock;
pub use faulty::{Fault, Faulty, Fired, Plan, Point, Step};
pub use history::{Checked, History, Recording, Reply, Request, Rule, Ticket, Violation};
pub use op::Op;
pub use random::Random;
pub use reference::ReferenceStore;
pub use rig::{Facts, Removal, Rig, Time};
