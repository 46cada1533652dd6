//! The simulation: every scenario with every fault, a slice of the random histories, and defects that the oracle must find.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hapax::OnLapse;
use hapax_core::OnLapse::{Rerun, Uncertain};
use hapax_e2e::simulation::event::{
    AttemptId, CallId, CallResult, Event, FaultKind, KeyId, ProcessId, RunEnd, RunId, StoreEffect, TraceEntry,
};
use hapax_e2e::simulation::oracle::Terms;
use hapax_e2e::simulation::report::play;
use hapax_e2e::simulation::work::Work;
use hapax_e2e::simulation::world::{Settings, SimCall, World};
use hapax_e2e::simulation::{LEASE, oracle, random, scenario, systematic};
use hapax_testkit::{Fault, Op, Plan, Point};

#[test]
fn every_fault_at_every_point_of_every_scenario_breaks_no_rule() {
    for scenario in scenario::ALL {
        let row = systematic::exhaust(scenario);
        if let Some((case, played)) = row.failures.first() {
            panic!("{}: {case}\n{}", scenario.name, played.timeline());
        }
        for kind in FaultKind::ALL {
            assert!(row.fired[kind as usize] > 0, "no {} fired in {}", kind.name(), scenario.name);
        }
    }
    assert!(scenario::ALL.len() >= 12);
}

#[test]
fn random_histories_break_no_rule() {
    for seed in 1..=300 {
        let played = random::history(seed);
        assert!(played.violations.is_empty(), "seed {seed}\n{}", played.timeline());
    }
}

#[test]
fn a_seed_repeats_its_history() {
    for seed in 1..=40 {
        let (first, again) = (random::history(seed), random::history(seed));
        assert_eq!(first.timeline(), again.timeline(), "seed {seed}");
        assert_eq!(first, again, "seed {seed}");
    }
}

#[test]
fn random_histories_reach_every_fault_and_every_result() {
    let mut fired = [0; FaultKind::ALL.len()];
    let mut told = std::collections::BTreeSet::new();
    let mut doubled = false;
    for seed in 1..=200 {
        let played = random::history(seed);
        fired.iter_mut().zip(played.fired).for_each(|(sum, fired)| *sum += fired);
        for entry in &played.entries {
            match entry.event {
                Event::Answered { answer, .. } => {
                    told.insert(answer.words());
                }
                Event::Started { number, .. } if number > 1 => doubled = true,
                _ => {}
            }
        }
    }
    assert!(fired.iter().all(|fired| *fired > 0), "{fired:?}");
    assert!(doubled, "no key ran again");
    for answer in [
        "ran",
        "ran unrecorded",
        "replayed",
        "failed",
        "failed before",
        "in progress",
        "mismatch",
        "uncertain",
        "superseded",
        "deadline",
        "draining",
        "store error",
    ] {
        assert!(told.contains(answer), "no call returned: {answer}");
    }
}

#[test]
fn a_renewal_in_flight_does_not_keep_the_keeper_busy() {
    let rests = Arc::new(AtomicU64::new(0));
    let counted = rests.clone();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .on_thread_park(move || {
            counted.fetch_add(1, Ordering::Relaxed);
        })
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut world = World::new(Settings::plain(1, Uncertain));
        world.processes[0].faulty.set_plan(Plan::new().always(Op::Renew, Fault::Delay(Point::Before, LEASE)));
        world.call(0, SimCall::of(Work::taking(1000)));
        world.finish().await;
    });
    // Claim, run, a few tries to renew, complete: no poll for every millisecond.
    let rests = rests.load(Ordering::Relaxed);
    assert!(rests < 50, "the runtime parked {rests} times");
}

#[test]
fn a_process_that_is_paused_or_dead_has_no_effects() {
    let (played, ()) = play(Settings::plain(2, Uncertain), async |world: &mut World| {
        world.call(0, SimCall::of(Work::taking(400)));
        world.call(1, SimCall { key: KeyId(0), ..SimCall::of(Work::taking(400)) });
        tokio::time::sleep(Duration::from_millis(100)).await;
        world.crash(0);
        world.pause(1, LEASE);
        tokio::time::sleep(LEASE / 2).await;
    });
    assert!(played.violations.is_empty(), "{}", played.timeline());
    let healed = played.entries.iter().position(|entry| entry.event == Event::Healed).unwrap();
    let effects =
        played.entries[..healed].iter().filter(|entry| matches!(entry.event, Event::TookEffect { .. }));
    assert_eq!(effects.count(), 0, "{}", played.timeline());
}

#[test]
fn an_answer_to_a_dead_process_starts_no_run() {
    let (played, ()) = play(Settings::plain(1, Uncertain), async |world: &mut World| {
        let late = Fault::Delay(Point::After, LEASE / 4);
        world.processes[0].faulty.set_plan(Plan::new().at_nth(Op::Claim, 1, late));
        world.call(0, SimCall::of(Work::taking(0)));
        tokio::time::sleep(LEASE / 8).await;
        world.crash(0);
        tokio::time::sleep(LEASE).await;
    });
    assert!(played.violations.is_empty(), "{}", played.timeline());
    let is_start = |entry: &&TraceEntry| matches!(entry.event, Event::Started { process: ProcessId(0), .. });
    assert_eq!(played.entries.iter().filter(is_start).count(), 0, "{}", played.timeline());
}

/// A hand-written trace: one process, one key, two calls.
fn trace(rest: &[Event]) -> Vec<TraceEntry> {
    let process = ProcessId(0);
    let asked = |call| Event::Called {
        call: CallId(call),
        process,
        key: KeyId(0),
        input: 0,
        patience_ms: 0,
        has_deadline: false,
    };
    let mut events = vec![Event::Opened { process }, asked(0), asked(1)];
    events.extend(rest);
    (0..).zip(events).map(|(at_ms, event)| TraceEntry { at_ms, event }).collect()
}

fn acquired(attempt: u32, number: u32) -> Event {
    let step = StoreEffect::Acquired {
        number,
        lease_ms: 1200,
        uncertain_ms: 1 << 40,
        on_lapse: OnLapse::Uncertain,
        input: 0,
    };
    applied(attempt, step)
}

fn applied(attempt: u32, step: StoreEffect) -> Event {
    Event::Applied { process: ProcessId(0), key: KeyId(0), attempt: AttemptId(attempt), step }
}

fn started(run: u32, attempt: u32, number: u32) -> Event {
    Event::Started {
        run: RunId(run),
        call: CallId(run),
        process: ProcessId(0),
        key: KeyId(0),
        attempt: AttemptId(attempt),
        number,
    }
}

fn took_effect(run: u32) -> Event {
    Event::TookEffect { run: RunId(run) }
}

fn ended(run: u32, ending: RunEnd) -> Event {
    Event::Ended { run: RunId(run), ending }
}

fn answered(call: u32, answer: CallResult) -> Event {
    Event::Answered { call: CallId(call), answer }
}

#[track_caller]
fn breaks(rule: &str, events: &[Event]) {
    let violations = oracle::check_trace(&trace(events), Terms { on_lapse: Uncertain, leases_hold: false });
    assert!(violations.iter().any(|violation| violation.rule.starts_with(rule)), "{rule}: {violations:?}");
}

const PINNED: StoreEffect = StoreEffect::Pinned { value: RunId(0), retention_ms: 1000 };

#[test]
fn the_oracle_accepts_a_run_and_its_replay() {
    let events = [
        acquired(0, 1),
        started(0, 0, 1),
        took_effect(0),
        ended(0, RunEnd::Value),
        applied(0, PINNED),
        answered(0, CallResult::Ran { value: RunId(0), recorded: true }),
        applied(1, StoreEffect::Replay { value: RunId(0), input: 0 }),
        answered(1, CallResult::Replayed(RunId(0))),
    ];
    for on_lapse in [Uncertain, Rerun] {
        assert_eq!(oracle::check_trace(&trace(&events), Terms { on_lapse, leases_hold: true }), []);
    }
}

#[test]
fn the_oracle_finds_a_second_effect() {
    let again =
        [acquired(0, 1), started(0, 0, 1), took_effect(0), acquired(1, 2), started(1, 1, 2), took_effect(1)];
    breaks("S4", &again);
    breaks("S7", &again);
}

#[test]
fn the_oracle_finds_a_run_without_a_claim_and_an_attempt_that_runs_twice() {
    breaks("S9", &[started(0, 0, 1)]);
    breaks("S5", &[acquired(0, 1), started(0, 0, 1), started(1, 0, 1)]);
}

#[test]
fn the_oracle_finds_an_answer_before_its_record() {
    let ran = CallResult::Ran { value: RunId(0), recorded: true };
    breaks(
        "S2",
        &[acquired(0, 1), started(0, 0, 1), took_effect(0), ended(0, RunEnd::Value), answered(0, ran)],
    );
    breaks("S1", &[answered(1, CallResult::Replayed(RunId(0)))]);
}

#[test]
fn the_oracle_finds_a_stored_value_without_an_effect() {
    breaks("S3", &[acquired(0, 1), started(0, 0, 1), applied(0, PINNED)]);
}

#[test]
fn the_oracle_finds_a_release_without_a_retry() {
    breaks("S8", &[acquired(0, 1), started(0, 0, 1), applied(0, StoreEffect::Released)]);
    breaks("S8", &[acquired(0, 1), applied(0, StoreEffect::Released), started(0, 0, 1)]);
}

/// A run of attempt 0 whose outcome is unknown, and a takeover by attempt 1 whose claim is then released.
fn released_takeover() -> [Event; 6] {
    let taken_over =
        StoreEffect::Acquired { number: 2, lease_ms: 1200, uncertain_ms: 1 << 40, on_lapse: Rerun, input: 0 };
    [
        acquired(0, 1),
        started(0, 0, 1),
        ended(0, RunEnd::Unknown),
        applied(0, StoreEffect::Abandoned),
        applied(1, taken_over),
        applied(1, StoreEffect::Released),
    ]
}

#[test]
fn the_oracle_finds_a_takeover_whose_cancellation_frees_the_key() {
    breaks("S8", &released_takeover());
}

#[test]
fn the_oracle_accepts_late_copies_of_a_claim_and_of_its_cancellation() {
    let mut events = vec![acquired(1, 1), applied(1, StoreEffect::Released)];
    events.extend(released_takeover().into_iter().map(|event| match event {
        Event::Applied {
            step: StoreEffect::Acquired { number: 2, lease_ms, uncertain_ms, on_lapse, input },
            ..
        } => applied(1, StoreEffect::Acquired { number: 3, lease_ms, uncertain_ms, on_lapse, input }),
        Event::Applied { step: StoreEffect::Acquired { .. }, .. } => acquired(0, 2),
        Event::Started { .. } => started(0, 0, 2),
        other => other,
    }));
    let violations = oracle::check_trace(&trace(&events), Terms { on_lapse: Rerun, leases_hold: false });
    assert!(!violations.iter().any(|violation| violation.rule.starts_with("S8")), "{violations:?}");
}

#[test]
fn the_oracle_finds_a_run_that_its_call_denies() {
    breaks("P1", &[acquired(0, 1), started(0, 0, 1), answered(0, CallResult::Store)]);
    breaks("P1", &[answered(0, CallResult::InProgress), acquired(0, 1), started(0, 0, 1)]);
}

#[test]
fn the_oracle_finds_a_failure_without_a_fault() {
    breaks("P2", &[answered(0, CallResult::Store)]);
}
