//! Proofs of Hapax as a whole, in slices that fit into a test run.

mod benches;
mod chaos;
mod crash;
mod flips;
mod http_teeth;
mod sidecar;
mod simulation;
mod transactions;
