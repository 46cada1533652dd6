//! A slice of the crash proof; `cargo xtask prove crash` runs more of the same.

use hapax_e2e::crash::{Death, Engine, Rig, Seed, any_death, every_call_of_opening, full_disk, sync_failure};

/// Fixed, so that a failure here is one everywhere.
const SEED: u64 = 20_261_115;

/// More than can have been under way when the disk was freed.
const UNDER_WAY_MAX: u64 = 100;

fn rig(engine: Engine) -> Rig {
    Rig::new(env!("CARGO_BIN_EXE_crash"), engine, SEED).expect("a C compiler is there")
}

#[test]
fn nothing_acknowledged_is_lost_whatever_kills_the_process() {
    let report = rig(Engine::File).run(60, any_death).unwrap();
    assert_eq!(report.lost, [] as [String; 0]);
    assert_eq!(report.kills, 60);
    assert!(report.keys > 1_000, "the children did next to nothing: {report:?}");
    assert!(report.busy_ratio() >= 0.9, "most kills found nothing under way: {report:?}");
}

#[test]
fn nothing_acknowledged_is_lost_with_the_power() {
    let report = rig(Engine::File).run(20, |_| Death::PowerLoss).unwrap();
    assert_eq!(report.lost, [] as [String; 0]);
    assert!(report.checks > report.kills && report.keys > 1_000, "{report:?}");
}

#[test]
fn a_store_that_does_not_sync_is_found_out() {
    let report = rig(Engine::FileWithoutSync).run(6, |_| Death::PowerLoss).unwrap();
    assert!(!report.lost.is_empty(), "{report:?}");
}

#[test]
fn a_store_killed_in_any_call_of_its_first_opening_opens_again() {
    let report = every_call_of_opening(&rig(Engine::File), &mut Seed::new(SEED)).unwrap();
    assert_eq!(report.lost, [] as [String; 0]);
    assert!(report.kills > 20, "opening made hardly a call: {report:?}");
}

#[test]
fn a_failed_sync_stops_the_store_and_loses_nothing() {
    let rig = rig(Engine::File);
    for round in 0..4 {
        let faulted = sync_failure(&rig, round, &mut Seed::new(SEED).part(round)).unwrap();
        assert_eq!(faulted.report.lost, [] as [String; 0]);
        assert!(faulted.done_before > 0, "{faulted:?}");
        assert_eq!(faulted.refused.get("stopped"), Some(&rig.tasks()), "{faulted:?}");
    }
}

#[test]
fn a_full_disk_refuses_loses_nothing_and_recovers() {
    let faulted = full_disk(&rig(Engine::File), 0).unwrap();
    assert_eq!(faulted.report.lost, [] as [String; 0]);
    assert!(faulted.refused.contains_key("full"), "{faulted:?}");
    assert_eq!(faulted.refused.len(), 1, "refused otherwise than as full: {faulted:?}");
    assert!(faulted.done_after > UNDER_WAY_MAX, "it did not recover: {faulted:?}");
}
