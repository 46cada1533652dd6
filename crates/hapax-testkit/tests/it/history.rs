//! The checker reports histories that no correct store could have produced, and accepts all others, faults included.

use std::sync::Arc;
use std::time::Duration;

use hapax_core::transition::{Answer, Command};
use hapax_core::{
    Claim, ClaimRequest, Class, Deleted, Fence, Fenced, Fingerprint, Format, Key, Lease, Lookup, ManualClock,
    Nonce, OnLapse, RecordId, Recorded, Scope, ScopedKey, Settled, Settlement, Store, StoreErrorKind,
    Verdict,
};
use hapax_testkit::{
    Fault, Faulty, History, Op, Plan, Random, Recording, ReferenceStore, Reply, Request, Rule, Ticket,
};

use crate::wrong::{self, Wrong};

const LEASE: Duration = Duration::from_secs(30);
const RETENTION: Duration = Duration::from_secs(600);

/// A hand-written history of one key.
struct KeyHistory {
    clock: ManualClock,
    log: History,
}

impl KeyHistory {
    fn new() -> Self {
        let clock = ManualClock::new();
        Self { log: History::new(clock.clone()), clock }
    }

    fn invoke(&self, command: Command) -> Ticket {
        self.log.invoke("someone", Request::Command(command))
    }

    fn answer(&self, ticket: Ticket, answer: Answer) {
        self.log.answer(ticket, Ok(Reply::Answer(answer)));
    }

    fn call(&self, command: Command, answer: Answer) {
        let ticket = self.invoke(command);
        self.answer(ticket, answer);
    }

    fn acquired(&self, ask: &ClaimRequest, attempt: u32) {
        self.call(Command::Claim(ask.clone()), acquired(ask, attempt));
    }

    fn completed(&self, ask: &ClaimRequest, attempt: u32, text: &str) {
        self.call(complete(ask, attempt, text), Answer::Fenced(Fenced::Applied));
    }

    #[track_caller]
    fn assert_breaks(&self, rule: Rule) {
        let violation = self.log.check().expect_err("the history should be reported");
        assert_eq!(violation.rule(), rule, "{violation}");
    }

    #[track_caller]
    fn assert_legal(&self) {
        if let Err(violation) = self.log.check() {
            panic!("the history should be accepted: {violation}");
        }
    }
}

fn key() -> ScopedKey {
    ScopedKey::new(Scope::new("history"), &Key::new("one key").expect("a proper key"))
}

fn ask(nonce: u8) -> ClaimRequest {
    ClaimRequest {
        key: key(),
        fingerprint: Fingerprint::empty(),
        nonce: Nonce::from_bytes([nonce; 16]),
        lease: LEASE,
        on_lapse: OnLapse::Uncertain,
        attempts_max: 5,
        uncertain_retention: LEASE * 100,
    }
}

fn rerun(nonce: u8) -> ClaimRequest {
    ClaimRequest { on_lapse: OnLapse::Rerun, ..ask(nonce) }
}

fn lease(ask: &ClaimRequest, attempt: u32) -> Lease {
    Lease { id: ask.key.id, fence: Fence { nonce: ask.nonce, attempt }, length: ask.lease }
}

fn acquired(ask: &ClaimRequest, attempt: u32) -> Answer {
    Answer::Claim(Claim::Acquired(lease(ask, attempt)))
}

fn outcome(text: &str) -> Recorded {
    Recorded::new(Class::Success, Format::FUNCTION, text.to_owned())
}

fn complete(ask: &ClaimRequest, attempt: u32, text: &str) -> Command {
    Command::Complete { lease: lease(ask, attempt), done: outcome(text), retention: RETENTION }
}

fn release(ask: &ClaimRequest, attempt: u32) -> Command {
    Command::Release { lease: lease(ask, attempt), answered: None }
}

fn replay(text: &str, remaining: Duration) -> Answer {
    Answer::Claim(Claim::Replay { recorded: outcome(text), remaining })
}

#[test]
fn two_acquired_claims_are_reported() {
    let history = KeyHistory::new();
    history.acquired(&ask(1), 1);
    history.acquired(&ask(2), 1);
    history.assert_breaks(Rule::NotLinearisable);
}

#[test]
fn a_lost_update_is_reported() {
    let history = KeyHistory::new();
    history.acquired(&ask(1), 1);
    history.completed(&ask(1), 1, "done");
    let busy = Claim::Busy { lease_left: LEASE };
    history.call(Command::Claim(ask(2)), Answer::Claim(busy));
    history.assert_breaks(Rule::NotLinearisable);
}

#[test]
fn a_stale_completion_that_was_applied_is_reported() {
    let history = KeyHistory::new();
    history.acquired(&rerun(1), 1);
    history.clock.advance(LEASE);
    history.acquired(&rerun(2), 2);
    history.completed(&rerun(1), 1, "late");
    history.assert_breaks(Rule::NotLinearisable);
}

#[test]
fn a_replay_of_another_value_is_reported() {
    let history = KeyHistory::new();
    history.acquired(&ask(1), 1);
    history.completed(&ask(1), 1, "done");
    history.call(Command::Claim(ask(2)), replay("something else", RETENTION));
    history.assert_breaks(Rule::NotLinearisable);
}

#[test]
fn a_takeover_before_the_lease_lapsed_is_reported() {
    for (waited, legal) in [(LEASE - Duration::from_millis(1), false), (LEASE, true)] {
        let history = KeyHistory::new();
        history.acquired(&rerun(1), 1);
        history.clock.advance(waited);
        history.acquired(&rerun(2), 2);
        if legal { history.assert_legal() } else { history.assert_breaks(Rule::NotLinearisable) }
    }
}

#[test]
fn a_wrong_span_is_reported() {
    let history = KeyHistory::new();
    history.acquired(&ask(1), 1);
    history.clock.advance(LEASE / 2);
    let busy = Claim::Busy { lease_left: LEASE };
    history.call(Command::Claim(ask(2)), Answer::Claim(busy));
    history.assert_breaks(Rule::NotLinearisable);
}

#[test]
fn a_missing_record_is_reported_unless_a_sweep_may_have_removed_it() {
    for (waited, legal) in [(RETENTION / 2, false), (RETENTION, true)] {
        let history = KeyHistory::new();
        history.acquired(&ask(1), 1);
        history.completed(&ask(1), 1, "done");
        history.clock.advance(waited);
        let sweep = history.log.invoke("sweeper", Request::Sweep);
        history.log.answer(sweep, Ok(Reply::Swept));
        let get = history.log.invoke("reader", Request::Get(key().id));
        history.log.answer(get, Ok(Reply::Lookup(Lookup::Absent)));
        if legal { history.assert_legal() } else { history.assert_breaks(Rule::NotLinearisable) }
    }
}

#[test]
fn a_sweep_that_had_ended_explains_nothing_later() {
    let history = KeyHistory::new();
    let sweep = history.log.invoke("sweeper", Request::Sweep);
    history.log.answer(sweep, Ok(Reply::Swept));
    history.acquired(&ask(1), 1);
    history.completed(&ask(1), 1, "done");
    history.clock.advance(RETENTION);
    let get = history.log.invoke("reader", Request::Get(key().id));
    history.log.answer(get, Ok(Reply::Lookup(Lookup::Absent)));
    history.assert_breaks(Rule::NotLinearisable);
}

#[test]
fn only_overlapping_calls_may_be_reordered() {
    // Released before or after the second claim, depending on whether the two overlap.
    for overlap in [true, false] {
        let history = KeyHistory::new();
        history.acquired(&ask(1), 1);
        let claim = history.invoke(Command::Claim(ask(2)));
        if overlap {
            history.call(release(&ask(1), 1), Answer::Fenced(Fenced::Applied));
            history.answer(claim, acquired(&ask(2), 2));
            history.assert_legal();
        } else {
            history.answer(claim, acquired(&ask(2), 2));
            history.call(release(&ask(1), 1), Answer::Fenced(Fenced::Applied));
            history.assert_breaks(Rule::NotLinearisable);
        }
    }
}

#[test]
fn an_ambiguous_call_may_have_happened_or_not_or_later() {
    let unknown = |history: &KeyHistory, command| {
        let ticket = history.invoke(command);
        history.log.answer(ticket, Err(StoreErrorKind::Unknown));
    };
    let history = KeyHistory::new();
    history.acquired(&ask(1), 1);
    unknown(&history, complete(&ask(1), 1, "done"));
    history.call(Command::Claim(ask(2)), replay("done", RETENTION));
    history.assert_legal();

    let history = KeyHistory::new();
    history.acquired(&ask(1), 1);
    unknown(&history, complete(&ask(1), 1, "done"));
    history.call(Command::Claim(ask(2)), Answer::Claim(Claim::Busy { lease_left: LEASE }));
    history.assert_legal();
    history.call(Command::Claim(ask(3)), replay("done", RETENTION));
    history.assert_legal();
    history.call(Command::Claim(ask(4)), Answer::Claim(Claim::Busy { lease_left: LEASE }));
    history.assert_breaks(Rule::NotLinearisable);
}

#[test]
fn a_call_that_was_not_applied_explains_nothing() {
    let history = KeyHistory::new();
    history.acquired(&ask(1), 1);
    let ticket = history.invoke(complete(&ask(1), 1, "done"));
    history.log.answer(ticket, Err(StoreErrorKind::Unavailable));
    history.call(Command::Claim(ask(2)), replay("done", RETENTION));
    history.assert_breaks(Rule::NotLinearisable);
}

#[test]
fn a_call_that_is_never_answered_may_act_much_later() {
    let history = KeyHistory::new();
    let _lost = history.invoke(Command::Claim(ask(1)));
    history.clock.advance(LEASE * 3);
    history.acquired(&ask(2), 1);
    history.call(release(&ask(2), 1), Answer::Fenced(Fenced::Applied));
    // The lost claim comes through only now.
    history.call(Command::Claim(ask(3)), Answer::Claim(Claim::Busy { lease_left: LEASE }));
    history.assert_legal();
}

#[test]
fn a_slow_call_may_act_at_any_time_it_took() {
    // The first claim takes longer than a lease. Where in it the store acted decides what is left for others.
    for left in [Duration::from_secs(1), LEASE / 2, LEASE] {
        let history = KeyHistory::new();
        let slow = history.invoke(Command::Claim(ask(1)));
        history.clock.advance(LEASE * 2);
        history.answer(slow, acquired(&ask(1), 1));
        history.call(Command::Claim(ask(2)), Answer::Claim(Claim::Busy { lease_left: left }));
        history.assert_legal();
    }
}

#[test]
fn the_timeline_is_short_and_marks_the_break() {
    let history = KeyHistory::new();
    for nonce in 10..60 {
        history.call(
            Command::Delete { id: key().id, nonce: ask(nonce).nonce },
            Answer::Deleted(Deleted::Absent),
        );
    }
    history.acquired(&ask(1), 1);
    for nonce in 10..60 {
        history.call(Command::Claim(ask(nonce)), Answer::Claim(Claim::Busy { lease_left: LEASE }));
    }
    history.acquired(&ask(2), 1);
    history.completed(&ask(2), 1, "done");
    let timeline = history.log.check().expect_err("two owners").to_string();
    let lines: Vec<&str> = timeline.lines().collect();
    assert_eq!(lines.len(), 3, "a headline and the two claims:\n{timeline}");
    assert!(lines[2].starts_with('>') && lines[2].contains("Acquired"), "{timeline}");
}

#[test]
fn an_effect_needs_a_granted_claim() {
    let history = KeyHistory::new();
    history.log.effect("someone", key().id, lease(&ask(1), 1).fence);
    history.acquired(&ask(1), 1);
    history.assert_breaks(Rule::EffectWithoutClaim);
}

#[test]
fn one_fence_has_one_effect() {
    let history = KeyHistory::new();
    history.acquired(&ask(1), 1);
    history.log.effect("someone", key().id, lease(&ask(1), 1).fence);
    history.assert_legal();
    history.log.effect("someone", key().id, lease(&ask(1), 1).fence);
    history.assert_breaks(Rule::EffectTwiceUnderOneFence);
}

#[test]
fn a_second_effect_is_explained_by_a_release() {
    let history = KeyHistory::new();
    history.acquired(&ask(1), 1);
    history.log.effect("someone", key().id, lease(&ask(1), 1).fence);
    history.call(release(&ask(1), 1), Answer::Fenced(Fenced::Applied));
    history.acquired(&ask(2), 2);
    history.log.effect("someone", key().id, lease(&ask(2), 2).fence);
    history.assert_legal();
}

#[test]
fn a_second_effect_is_explained_by_a_permitted_takeover() {
    let history = KeyHistory::new();
    history.acquired(&rerun(1), 1);
    history.log.effect("someone", key().id, lease(&rerun(1), 1).fence);
    history.clock.advance(LEASE);
    history.acquired(&rerun(2), 2);
    history.log.effect("someone", key().id, lease(&rerun(2), 2).fence);
    history.assert_legal();
}

#[test]
fn a_second_effect_is_explained_by_a_settlement() {
    let history = KeyHistory::new();
    history.acquired(&ask(1), 1);
    history.log.effect("someone", key().id, lease(&ask(1), 1).fence);
    history.clock.advance(LEASE);
    let settlement =
        Settlement::new(ask(1).nonce, Verdict::NotApplied).with_nonce(Nonce::from_bytes([99; 16]));
    history.call(Command::Settle { id: key().id, settlement }, Answer::Settled(Settled::Applied));
    history.acquired(&ask(2), 2);
    history.log.effect("someone", key().id, lease(&ask(2), 2).fence);
    history.assert_legal();
}

#[test]
fn a_second_effect_without_explanation_is_reported() {
    let history = KeyHistory::new();
    history.acquired(&ask(1), 1);
    history.log.effect("someone", key().id, lease(&ask(1), 1).fence);
    history.clock.advance(LEASE);
    history.acquired(&ask(2), 2);
    history.assert_breaks(Rule::NotLinearisable);
    history.log.effect("someone", key().id, lease(&ask(2), 2).fence);
    history.assert_breaks(Rule::SecondEffect);
}

#[test]
fn an_effect_after_its_attempt_ended_is_reported() {
    for ending in [release(&ask(1), 1), complete(&ask(1), 1, "done")] {
        let history = KeyHistory::new();
        history.acquired(&ask(1), 1);
        history.call(ending, Answer::Fenced(Fenced::Applied));
        history.log.effect("someone", key().id, lease(&ask(1), 1).fence);
        history.assert_breaks(Rule::EffectAfterEnd);
    }
}

#[test]
fn callers_get_one_outcome_while_it_is_kept() {
    for (waited, legal) in [(RETENTION / 2, false), (RETENTION, true)] {
        let history = KeyHistory::new();
        history.acquired(&ask(1), 1);
        history.completed(&ask(1), 1, "first");
        history.log.outcome("someone", key().id, &outcome("first"));
        history.clock.advance(waited);
        if legal {
            history.acquired(&ask(2), 1);
            history.completed(&ask(2), 1, "second");
        } else {
            let ticket = history.invoke(complete(&ask(2), 1, "second"));
            history.log.answer(ticket, Err(StoreErrorKind::Unknown));
        }
        history.log.outcome("someone", key().id, &outcome("second"));
        if legal { history.assert_legal() } else { history.assert_breaks(Rule::TwoOutcomes) }
    }
}

#[test]
fn callers_get_only_recorded_outcomes() {
    let history = KeyHistory::new();
    history.acquired(&ask(1), 1);
    history.call(complete(&ask(1), 1, "done"), Answer::Fenced(Fenced::Applied));
    history.log.outcome("someone", key().id, &outcome("made up"));
    history.assert_breaks(Rule::OutcomeNeverRecorded);
}

/// Concurrent processes, and operations that each starts.
const PROCESSES: u64 = 4;
const OPERATIONS: u64 = 40;

/// Crowds that are checked.
const CROWDS: u64 = 100;

/// Processes with faulty connections use two keys of one store concurrently, and their history is checked.
async fn crowd(seed: u64, wrap: impl Fn(Arc<dyn Store>) -> Arc<dyn Store>) -> History {
    let clock = ManualClock::new();
    let history = History::new(clock.clone());
    let store = wrap(Arc::new(ReferenceStore::new(clock.clone())));
    let faults = [
        Fault::ErrorBefore(StoreErrorKind::Unavailable),
        Fault::ErrorBefore(StoreErrorKind::Unknown),
        Fault::AnswerLost,
    ];
    let mut processes = Vec::new();
    for process in 0..PROCESSES {
        let faulty = Faulty::new(store.clone());
        faulty.set_plan(Plan::new().by_chance(seed ^ process, 150, &Op::ALL, &faults));
        let store = Recording::new(&history, &format!("process {process}"), Arc::new(faulty));
        let random = Random::seeded(seed.wrapping_mul(31).wrapping_add(process));
        processes.push(tokio::spawn(work(store, clock.clone(), random)));
    }
    for process in processes {
        process.await.expect("no process panics");
    }
    history
}

async fn work(store: Recording, clock: ManualClock, mut random: Random) {
    let mut held: Option<Lease> = None;
    for _ in 0..OPERATIONS {
        let key = ScopedKey::new(
            Scope::new("crowd"),
            &Key::new(format!("{}", random.below(2))).expect("a proper key"),
        );
        let id: RecordId = key.id;
        // A lease is still used after it was lost, as by a process that was paused.
        match (random.below(10), &held) {
            (0, _) => clock.advance(LEASE / 3),
            (1, _) => drop(store.sweep(10).await),
            (2, _) => drop(store.get(&id).await),
            (3, Some(lease)) => drop(store.renew(lease).await),
            (4, Some(lease)) => drop(store.release(lease, None).await),
            (5 | 6, Some(lease)) => {
                let done = outcome(&format!("{}", random.below(1000)));
                drop(store.complete(lease, &done, LEASE * 2).await);
            }
            _ => {
                let ask = ClaimRequest {
                    key,
                    nonce: Nonce::from_bytes(random.bytes()),
                    uncertain_retention: LEASE * 3,
                    ..if random.chance(500) { ask(0) } else { rerun(0) }
                };
                if let Ok(Claim::Acquired(lease)) = store.claim(&ask).await {
                    held = Some(lease);
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_correct_store_is_never_reported() {
    for seed in 0..CROWDS {
        let history = crowd(seed, |store| store).await;
        let checked = history.check().unwrap_or_else(|violation| panic!("seed {seed}: {violation}"));
        assert_eq!(checked.keys, 2);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_store_is_reported() {
    for defect in [Wrong::UnfencedComplete, Wrong::ReleaseByAnyone, Wrong::LeaseNeverLapses] {
        let mut refused = false;
        for seed in 0..CROWDS {
            let history = crowd(seed, |store| wrong::wrap(defect, store)).await;
            refused = history.check().is_err_and(|violation| violation.rule() == Rule::NotLinearisable);
            if refused {
                break;
            }
        }
        assert!(refused, "{defect:?} should be noticed");
    }
}
