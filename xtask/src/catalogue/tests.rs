use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::{
    BENCHES, CHAOS_SLICE, CLIENT_SLICE, CRASH_SLICE, E2E, EVENTS_MODEL_SLICE, Entry, HTTP_SLICE, MODEL,
    MODEL_SLICE, PROOFS, Program, Runner, SIDECAR_SLICE, SIMULATION_SLICE,
};

#[test]
fn catalogue_lists_exactly_the_existing_programs() {
    let entries = BENCHES.iter().chain(PROOFS);
    let named: BTreeSet<PathBuf> = entries
        .flat_map(|entry| entry.programs)
        .filter_map(|program| {
            let folder = Path::new(program.package).join(folder(program)?);
            Some(folder.join(program.bin).with_extension("rs"))
        })
        .collect();
    let crates = crate::root().unwrap().join("crates");
    let real: BTreeSet<PathBuf> = [E2E, MODEL]
        .iter()
        .flat_map(|package| [crates.join(package).join("src/bin"), crates.join(package).join("benches")])
        .filter_map(|folder| fs::read_dir(folder).ok())
        .flatten()
        .map(|file| file.unwrap().path().strip_prefix(&crates).unwrap().to_owned())
        .collect();
    assert_eq!(named, real);
}

fn folder(program: &Program) -> Option<&'static str> {
    match program.runner {
        Runner::Direct => Some("src/bin"),
        Runner::Gungraun => Some("benches"),
        // Its targets are discovered, not listed.
        Runner::Libfuzzer => None,
    }
}

#[test]
fn goals_of_a_slice_are_goals_of_its_proof() {
    for slice in [
        MODEL_SLICE,
        EVENTS_MODEL_SLICE,
        SIMULATION_SLICE,
        CRASH_SLICE,
        HTTP_SLICE,
        SIDECAR_SLICE,
        CLIENT_SLICE,
        CHAOS_SLICE,
    ] {
        let proves = |entry: &&Entry| entry.programs.iter().any(|p| p.bin == slice.program.bin);
        let proof = PROOFS.iter().find(proves).unwrap();
        assert!(slice.goals.iter().all(|goal| proof.goals.contains(goal)), "{slice:?}");
    }
}

#[test]
fn names_and_goals_are_unique() {
    for table in [BENCHES, PROOFS] {
        let names: BTreeSet<&str> = table.iter().map(|entry| entry.name).collect();
        assert_eq!(names.len(), table.len());
    }
    let entries = || BENCHES.iter().chain(PROOFS);
    let goals: BTreeSet<&str> = entries().flat_map(|entry| entry.goals).copied().collect();
    assert_eq!(goals.len(), entries().flat_map(|entry| entry.goals).count());
}
