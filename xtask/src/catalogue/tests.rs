use std::collections::BTreeSet;

use super::{BENCHES, CRASH_SLICE, Entry, MODEL_SLICE, PROOFS, SIMULATION_SLICE};

#[test]
fn a_slice_prints_no_goal_that_its_long_proof_does_not() {
    for slice in [MODEL_SLICE, SIMULATION_SLICE, CRASH_SLICE] {
        let proves = |entry: &&Entry| entry.programs.iter().any(|p| p.bin == slice.program.bin);
        let proof = PROOFS.iter().find(proves).unwrap();
        assert!(slice.goals.iter().all(|goal| proof.goals.contains(goal)), "{slice:?}");
    }
}

#[test]
fn names_and_goals_are_unique() {
    let entries = || BENCHES.iter().chain(PROOFS);
    let names: BTreeSet<&str> = entries().map(|entry| entry.name).collect();
    assert_eq!(names.len(), entries().count());
    let goals: BTreeSet<&str> = entries().flat_map(|entry| entry.goals).copied().collect();
    assert_eq!(goals.len(), entries().flat_map(|entry| entry.goals).count());
}
