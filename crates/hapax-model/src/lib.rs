//! The protocol, explored: every interleaving of executors, an operator, a faulty network and a store on one
//! key, within [`Bounds`], by [stateright](https://docs.rs/stateright).
//!
//! Every step of the store calls the production functions of [`hapax_core::transition`]; the rules it is held to
//! are written down apart from it. What the checker proves is the protocol for the bounds explored, nothing
//! about the engine or about any store's own statements.
//!
//! # What can happen
//!
//! An executor starts an attempt with a fresh nonce, is told that the key is its own, performs its effect,
//! brings its outcome. At any moment it may pause, crash, lose patience, give the key back (before its effect,
//! or after it when the handler declares itself retryable) or give up. Any request may arrive late, twice, or
//! never, and its answer may be lost; an answer that is delayed is an executor that pauses after it. Leases run
//! out, retention ends, a sweeper comes by, the store's process restarts. An operator settles uncertain records
//! and deletes records. The operator tells the truth: "applied" only if the effect happened, "not applied" only
//! if it did not and its executor is gone. What a lie does is out of scope.
//!
//! In transactional mode the effect becomes visible in the step that pins the outcome, and a completion that
//! changes nothing rolls back: the claim is either part of the same transaction or was made before it.
//!
//! # What must hold
//!
//! Until the retention of a record ends, or somebody deletes it:
//!
//! | | in every reachable state |
//! |---|---|
//! | S1 | at most one value was given to anybody as the outcome; at most once also counts unrecorded answers |
//! | S2 | every value given was made by an attempt whose effect happened, for the request that was asked |
//! | S3 | every pinned value was made by an attempt whose effect happened |
//! | S4 | at most one effect happened (at most once, transactional), declared retries apart |
//! | S5 | no attempt has two effects; a request that arrives again at once changes nothing and gets the same answer; a released attempt does not come back by its own delayed claim |
//! | S6 | a pinned record stays as it is, for exactly as long as was asked |
//! | S7 | an open claim changes only by its own attempt's request, after its lease by a claim (to a new attempt, or to uncertain), by a settlement that names it, by a sweep after its retention, or by a restart; what replaces it is what that request stands for |
//! | S8 | no attempt is released after an effect that it did not declare retryable |
//! | S9 | attempt numbers grow by one with every acquisition, takeovers stop at `attempts_max`, no two effects carry the same number: between two effects lies a takeover or a release |
//! | L1 | once nothing fails any more, every executor ends, no claim stays in progress, and an owner that lives and still holds the record brings its outcome home |
//! | L2 | the same, and one more caller ends with a pinned outcome, unless the attempts are used up (at least once, transactional) |
//!
//! R1 (somebody is given an outcome) and R2 (two effects, at least once) must be reachable: a model in which
//! nothing happens proves nothing. [`teeth`] lists defects that must be found, for the same reason.
#![warn(missing_docs)]

mod bounds;
mod check;
mod heal;
mod properties;
mod protocol;
mod rules;
mod slot;
mod state;
mod steps;
pub mod teeth;

pub use bounds::{Bounds, Mode};
pub use check::{Report, Until, Violation, check};
