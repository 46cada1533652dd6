//! Proofs of Hapax as a whole, in slices that fit into a test run.

mod benches;
mod chaos;
mod crash;
mod flips;
mod planted_defects;
mod sidecar;
mod simulation;
mod transactions;

use std::process::Command;

/// Runs the program of a proof. Returns whether it met its goals, and its output.
fn run_proof(program: &str, flags: &[&str]) -> (bool, String) {
    let output = Command::new(program).args(flags).output().expect("the proof starts");
    let printed = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(printed).expect("it prints text"))
}
