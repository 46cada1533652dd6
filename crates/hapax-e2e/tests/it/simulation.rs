//! The simulation: every scenario with every fault, a slice of the random histories, and the oracle's own teeth.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hapax::OnLapse;
use hapax_core::OnLapse::{Rerun, Uncertain};
use hapax_e2e::simulation::event::{
    Answer, AttemptId, CallId, Ending, Entry, Event, KeyId, Kind, ProcessId, RunId, Step,
};
use hapax_e2e::simulation::oracle::Terms;
use hapax_e2e::simulation::report::play;
use hapax_e2e::simulation::work::Work;
use hapax_e2e::simulation::world::{Ask, Settings, World};
use hapax_e2e::simulation::{LEASE, oracle, random, scenario, systematic};
use hapax_testkit::{Fault, Op, Plan, Point};

#[test]
fn every_fault_at_every_place_of_every_scenario_breaks_nothing() {
    for scenario in scenario::ALL {
        let row = systematic::exhaust(scenario);
        if let Some((case, played)) = row.failures.first() {
            panic!("{}: {case}\n{}", scenario.name, played.story());
        }
        for kind in Kind::ALL {
            assert!(row.fired[kind as usize] > 0, "no {} fired in {}", kind.name(), scenario.name);
        }
    }
    assert!(scenario::ALL.len() >= 12);
}

#[test]
fn random_histories_break_nothing() {
    for seed in 1..=300 {
        let played = random::history(seed);
        assert!(played.violations.is_empty(), "seed {seed}\n{}", played.story());
    }
}

#[test]
fn one_seed_is_one_history() {
    for seed in 1..=40 {
        let (first, again) = (random::history(seed), random::history(seed));
        assert_eq!(first.story(), again.story(), "seed {seed}");
        assert_eq!(first, again, "seed {seed}");
    }
}

#[test]
fn random_histories_reach_what_they_are_for() {
    let mut fired = [0; Kind::ALL.len()];
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
    assert!(doubled, "no key ever ran again");
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
        assert!(told.contains(answer), "nobody was ever told: {answer}");
    }
}

#[test]
fn a_renewal_under_way_does_not_keep_the_keeper_busy() {
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
        world.call(0, Ask::of(Work::taking(1000)));
        world.finish().await;
    });
    // Claim, run, a few tries to renew, complete: not one look for every millisecond.
    let rests = rests.load(Ordering::Relaxed);
    assert!(rests < 50, "the runtime went to rest {rests} times");
}

#[test]
fn a_process_that_is_paused_or_dead_has_no_effects() {
    let (played, ()) = play(Settings::plain(2, Uncertain), async |world: &mut World| {
        world.call(0, Ask::of(Work::taking(400)));
        world.call(1, Ask { key: KeyId(0), ..Ask::of(Work::taking(400)) });
        tokio::time::sleep(Duration::from_millis(100)).await;
        world.crash(0);
        world.pause(1, LEASE);
        tokio::time::sleep(LEASE / 2).await;
    });
    assert!(played.violations.is_empty(), "{}", played.story());
    let healed = played.entries.iter().position(|entry| entry.event == Event::Healed).unwrap();
    let effects =
        played.entries[..healed].iter().filter(|entry| matches!(entry.event, Event::Happened { .. }));
    assert_eq!(effects.count(), 0, "{}", played.story());
}

#[test]
fn an_answer_that_finds_its_process_dead_starts_nothing() {
    let (played, ()) = play(Settings::plain(1, Uncertain), async |world: &mut World| {
        let late = Fault::Delay(Point::After, LEASE / 4);
        world.processes[0].faulty.set_plan(Plan::new().at_nth(Op::Claim, 1, late));
        world.call(0, Ask::of(Work::taking(0)));
        tokio::time::sleep(LEASE / 8).await;
        world.crash(0);
        tokio::time::sleep(LEASE).await;
    });
    assert!(played.violations.is_empty(), "{}", played.story());
    let is_start = |entry: &&Entry| matches!(entry.event, Event::Started { process: ProcessId(0), .. });
    assert_eq!(played.entries.iter().filter(is_start).count(), 0, "{}", played.story());
}

/// A journal written by hand: one process, one key, two calls.
fn journal(rest: &[Event]) -> Vec<Entry> {
    let process = ProcessId(0);
    let asked = |call| Event::Asked {
        call: CallId(call),
        process,
        key: KeyId(0),
        input: 0,
        patience_ms: 0,
        has_deadline: false,
    };
    let mut events = vec![Event::Opened { process }, asked(0), asked(1)];
    events.extend(rest);
    (0..).zip(events).map(|(at_ms, event)| Entry { at_ms, event }).collect()
}

fn acquired(attempt: u32, number: u32) -> Event {
    let step = Step::Acquired {
        number,
        lease_ms: 1200,
        uncertain_ms: 1 << 40,
        on_lapse: OnLapse::Uncertain,
        input: 0,
    };
    applied(attempt, step)
}

fn applied(attempt: u32, step: Step) -> Event {
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

fn happened(run: u32) -> Event {
    Event::Happened { run: RunId(run) }
}

fn ended(run: u32, ending: Ending) -> Event {
    Event::Ended { run: RunId(run), ending }
}

fn answered(call: u32, answer: Answer) -> Event {
    Event::Answered { call: CallId(call), answer }
}

#[track_caller]
fn breaks(rule: &str, events: &[Event]) {
    let violations = oracle::judge(&journal(events), Terms { on_lapse: Uncertain, is_mild: false });
    assert!(violations.iter().any(|violation| violation.rule.starts_with(rule)), "{rule}: {violations:?}");
}

const PINNED: Step = Step::Pinned { value: RunId(0), retention_ms: 1000 };

#[test]
fn the_oracle_accepts_a_run_and_its_replay() {
    let events = [
        acquired(0, 1),
        started(0, 0, 1),
        happened(0),
        ended(0, Ending::Value),
        applied(0, PINNED),
        answered(0, Answer::Ran { value: RunId(0), recorded: true }),
        applied(1, Step::Replay { value: RunId(0), input: 0 }),
        answered(1, Answer::Replayed(RunId(0))),
    ];
    for on_lapse in [Uncertain, Rerun] {
        assert_eq!(oracle::judge(&journal(&events), Terms { on_lapse, is_mild: true }), []);
    }
}

#[test]
fn the_oracle_notices_a_second_effect() {
    let again =
        [acquired(0, 1), started(0, 0, 1), happened(0), acquired(1, 2), started(1, 1, 2), happened(1)];
    breaks("S4", &again);
    breaks("S7", &again);
}

#[test]
fn the_oracle_notices_a_run_without_a_claim_and_one_attempt_that_runs_twice() {
    breaks("S9", &[started(0, 0, 1)]);
    breaks("S5", &[acquired(0, 1), started(0, 0, 1), started(1, 0, 1)]);
}

#[test]
fn the_oracle_notices_an_answer_before_its_record() {
    let ran = Answer::Ran { value: RunId(0), recorded: true };
    breaks("S2", &[acquired(0, 1), started(0, 0, 1), happened(0), ended(0, Ending::Value), answered(0, ran)]);
    breaks("S1", &[answered(1, Answer::Replayed(RunId(0)))]);
}

#[test]
fn the_oracle_notices_a_stored_lie() {
    breaks("S3", &[acquired(0, 1), started(0, 0, 1), applied(0, PINNED)]);
}

#[test]
fn the_oracle_notices_a_release_that_nobody_asked_for() {
    breaks("S8", &[acquired(0, 1), started(0, 0, 1), applied(0, Step::Released)]);
    breaks("S8", &[acquired(0, 1), applied(0, Step::Released), started(0, 0, 1)]);
}

#[test]
fn the_oracle_notices_who_ran_and_was_told_otherwise() {
    breaks("P1", &[acquired(0, 1), started(0, 0, 1), answered(0, Answer::Store)]);
    breaks("P1", &[answered(0, Answer::InProgress), acquired(0, 1), started(0, 0, 1)]);
}

#[test]
fn the_oracle_notices_a_failure_without_a_fault() {
    breaks("P2", &[answered(0, Answer::Store)]);
}
