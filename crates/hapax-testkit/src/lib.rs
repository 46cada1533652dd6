//! Conformance suites for Hapax stores, a store that fails on purpose, and a history checker.

mod clock;
mod faulty;
mod history;
mod op;
mod random;
mod reference;
mod rig;
pub mod store_suite;

pub use clock::TokioClock;
pub use faulty::{Fault, Faulty, Fired, Plan, Point, Step};
pub use history::{Checked, History, Recording, Reply, Request, Rule, Ticket, Violation};
pub use op::Op;
pub use random::Random;
pub use reference::ReferenceStore;
pub use rig::{Facts, Removal, Rig, Time};
