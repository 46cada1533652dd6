//! A slice of the crash proof; `cargo xtask prove crash` runs more of the same.

use hapax_e2e::crash::{CrashRig, Death, Engine, any_death, every_call_of_opening, full_disk, sync_failure};
use hapax_testkit::Random;

/// Fixed, so that a failure here is one everywhere.
const SEED: u64 = 20_261_115;

/// More than can have been in flight when the disk was freed.
const IN_FLIGHT_MAX: u64 = 100;

fn rig(engine: Engine) -> CrashRig {
    CrashRig::new(env!("CARGO_BIN_EXE_crash"), engine, SEED).expect("a C compiler is there")
}

#[test]
fn no_acknowledged_operation_is_lost_by_a_kill() {
    let report = rig(Engine::File).run(60, any_death).unwrap();
    assert_eq!(report.lost, [] as [String; 0]);
    assert_eq!(report.kills, 60);
    assert!(report.keys > 1_000, "the children made no progress: {report:?}");
    assert!(report.busy_ratio() >= 0.9, "most kills hit no operation in flight: {report:?}");
}

#[test]
fn no_acknowledged_operation_is_lost_by_a_power_loss() {
    let report = rig(Engine::File).run(20, |_| Death::PowerLoss).unwrap();
    assert_eq!(report.lost, [] as [String; 0]);
    assert!(report.checks > report.kills && report.keys > 1_000, "{report:?}");
}

#[test]
fn missing_syncs_are_found() {
    let report = rig(Engine::FileWithoutSync).run(6, |_| Death::PowerLoss).unwrap();
    assert!(!report.lost.is_empty(), "{report:?}");
}

#[test]
fn a_store_killed_in_any_call_of_its_first_opening_opens_again() {
    let report = every_call_of_opening(&rig(Engine::File), &mut Random::seeded(SEED)).unwrap();
    assert_eq!(report.lost, [] as [String; 0]);
    assert!(report.kills > 20, "opening made few calls: {report:?}");
}

#[test]
fn a_failed_sync_stops_the_store_and_loses_nothing() {
    let rig = rig(Engine::File);
    for round in 0..4 {
        let faulted = sync_failure(&rig, round, &mut Random::seeded(SEED).fork(round)).unwrap();
        assert_eq!(faulted.check.lost, [] as [String; 0]);
        assert!(faulted.done_before > 0, "{faulted:?}");
        assert_eq!(faulted.refused.get("stopped"), Some(&rig.tasks()), "{faulted:?}");
    }
}

#[test]
fn a_full_disk_refuses_operations_loses_none_and_recovers() {
    let faulted = full_disk(&rig(Engine::File), 0).unwrap();
    assert_eq!(faulted.check.lost, [] as [String; 0]);
    assert!(faulted.refused.contains_key("full"), "{faulted:?}");
    assert_eq!(faulted.refused.len(), 1, "refused for another reason than full: {faulted:?}");
    assert!(faulted.done_after > IN_FLIGHT_MAX, "it did not recover: {faulted:?}");
}
