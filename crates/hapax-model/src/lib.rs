//! A model checker for the protocol: every interleaving of executors, an operator, a faulty network and a store on
//! one key, within [`Bounds`], by [stateright](https://docs.rs/stateright).
//!
//! Every step of the store calls the production functions of [`hapax_core::transition`]; the rules that it is checked
//! against are written independently. The checker proves the protocol within the explored bounds, nothing about the
//! engine or the statements of any store.
//!
//! [`events`] is a second, smaller model, of the consumer of events.
//!
//! # Actions
//!
//! An executor starts an attempt with a fresh nonce, acquires the key, performs its effect, sends its outcome. At any
//! moment it may pause, crash, time out, release the key (before its effect, or after it when the handler declares
//! itself retryable) or abandon it. Any request may be delayed, duplicated or lost, and its answer may be lost; a
//! delayed answer is modelled as an executor that pauses after it. Leases lapse, retention ends, a sweep runs, the
//! store's process restarts. An operator settles uncertain records and deletes records. The operator is truthful:
//! "applied" only if the effect happened, "not applied" only if it did not and its executor is gone. False settlements
//! are out of scope.
//!
//! In transactional mode the effect becomes visible in the step that pins the outcome, and a completion that
//! changes nothing rolls back: the claim is either part of the same transaction or was committed before it.
//!
//! # Properties
//!
//! Until the retention of a record ends, or it is deleted:
//!
//! | | in every reachable state |
//! |---|---|
//! | S1 | at most one value was returned to callers as the outcome; at most once also counts unrecorded answers |
//! | S2 | every returned value was produced by an attempt whose effect happened, for the same request |
//! | S3 | every pinned value was produced by an attempt whose effect happened |
//! | S4 | at most one effect happened (at most once, transactional), declared retries excepted |
//! | S5 | no attempt has two effects; an immediate duplicate of a request changes nothing and gets the same answer; a released attempt is not reacquired by its own delayed claim |
//! | S6 | a pinned record does not change, for exactly the requested retention |
//! | S7 | an open claim changes only by a request of its own attempt, after its lease by a claim (to a new attempt, or to uncertain), by a settlement that names it, by a sweep after its retention, or by a restart; the new record is the one that this request specifies |
//! | S8 | no attempt is released after an effect that it did not declare retryable |
//! | S9 | attempt numbers grow by one with every acquisition, takeovers stop at `attempts_max`, no two effects carry the same number: between two effects lies a takeover or a release |
//! | L1 | once faults stop, every executor terminates, no claim stays in progress, and a live owner that still holds the record gets its outcome pinned |
//! | L2 | as L1, and one more caller ends with a pinned outcome, unless the attempts are used up (at least once, transactional) |
//!
//! R1 (a caller receives an outcome) and R2 (two effects, at least once) must be reachable, so that the properties do
//! not hold vacuously. For the same reason [`teeth`] lists planted defects that the checker must find.
#![warn(missing_docs)]

mod bounds;
mod check;
pub mod events;
mod liveness;
mod properties;
mod protocol;
mod rules;
mod slot;
mod state;
mod steps;
pub mod teeth;

pub use bounds::{Bounds, Mode};
pub use check::{Report, Until, Violation, check};
