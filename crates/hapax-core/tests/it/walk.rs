//! Random walks: the invariants hold for every sequence of commands.
//!
//! One key, three nonces, a clock that moves in steps around the length of a lease. After every step the record
//! before and after are compared; the checks are independent of the implementation.

use std::time::Duration;

use hapax_core::transition::{Answer, Change, Command, Decision, Due, decide, due, restart};
use hapax_core::{
    Claim, ClaimRequest, Class, Fence, Fenced, Fingerprint, Format, Key, Lease, Nonce, OnLapse, Reason,
    Record, Recorded, Scope, ScopedKey, Settled, Settlement, State, Status, Timestamp, Verdict,
};
use proptest::prelude::*;

use crate::sample;

const LEASE: Duration = Duration::from_secs(3);

#[derive(Clone, Debug)]
enum Step {
    Send(Command),
    Wait(Duration),
    Sweep,
    Restart,
}

fn key() -> ScopedKey {
    ScopedKey::new(Scope::new("pay"), &Key::new("k").unwrap())
}

fn any_nonce() -> impl Strategy<Value = Nonce> {
    (1..=3u8).prop_map(sample::nonce)
}

fn any_lease() -> impl Strategy<Value = Lease> {
    (any_nonce(), 1..4u32).prop_map(|(nonce, attempt)| Lease {
        id: key().id,
        fence: Fence { nonce, attempt },
        length: LEASE,
    })
}

fn any_outcome() -> impl Strategy<Value = Recorded> {
    (any::<bool>(), 0..3u8).prop_map(|(good, payload)| {
        Recorded::new(if good { Class::Success } else { Class::Error }, Format::FUNCTION, vec![payload])
    })
}

fn any_claim() -> impl Strategy<Value = ClaimRequest> {
    let on_lapse = prop_oneof![Just(OnLapse::Uncertain), Just(OnLapse::Rerun)];
    (any_nonce(), 0..5u8, on_lapse, 1..5u32).prop_map(|(nonce, request, on_lapse, attempts_max)| {
        ClaimRequest {
            key: key(),
            // Mostly the same request, or most claims would be mismatches.
            fingerprint: Fingerprint::builder().part("body", &[u8::from(request == 0)]).build(),
            nonce,
            lease: LEASE,
            on_lapse,
            attempts_max,
            uncertain_retention: Duration::from_secs(30),
        }
    })
}

fn any_settlement() -> impl Strategy<Value = Settlement> {
    let applied =
        any_outcome().prop_map(|recorded| Verdict::Applied { recorded, retention: Duration::from_secs(10) });
    // Settlements have nonces of their own, as the contract requires.
    (any_nonce(), 11..=12u8, prop_oneof![Just(Verdict::NotApplied), applied]).prop_map(
        |(attempt, nonce, verdict)| Settlement::new(attempt, verdict).with_nonce(sample::nonce(nonce)),
    )
}

fn any_step() -> impl Strategy<Value = Step> {
    let id = key().id;
    let retention = Duration::from_secs(10);
    let reason = prop::sample::select(&Reason::ALL[..]);
    prop_oneof![
        6 => any_claim().prop_map(|ask| Step::Send(Command::Claim(ask))),
        2 => any_lease().prop_map(|lease| Step::Send(Command::Renew(lease))),
        2 => (any_lease(), any_outcome())
            .prop_map(move |(lease, done)| Step::Send(Command::Complete { lease, done, retention })),
        2 => (any_lease(), prop::option::of(any_outcome()))
            .prop_map(|(lease, answered)| Step::Send(Command::Release { lease, answered })),
        1 => (any_lease(), reason)
            .prop_map(|(lease, reason)| Step::Send(Command::Abandon { lease, reason })),
        2 => any_settlement().prop_map(move |settlement| Step::Send(Command::Settle { id, settlement })),
        1 => any_nonce().prop_map(move |nonce| Step::Send(Command::Delete { id, nonce })),
        4 => prop::sample::select(vec![1u64, 2, 3, 11, 31, 601])
            .prop_map(|seconds| Step::Wait(Duration::from_secs(seconds))),
        1 => Just(Step::Sweep),
        1 => Just(Step::Restart),
    ]
}

/// The nonce of the attempt that the command names, or the target of a settlement or deletion.
fn named_nonce(command: &Command) -> Nonce {
    match command {
        Command::Claim(ask) => ask.nonce,
        Command::Renew(lease)
        | Command::Complete { lease, .. }
        | Command::Release { lease, .. }
        | Command::Abandon { lease, .. } => lease.fence.nonce,
        Command::Settle { settlement, .. } => settlement.attempt,
        Command::Delete { nonce, .. } => *nonce,
    }
}

fn after(before: Option<&Record>, change: Change) -> Option<Record> {
    match change {
        Change::Keep => before.cloned(),
        Change::Put(record) => Some(*record),
        Change::Remove => None,
    }
}

/// S6: a pinned outcome does not change until it expires, unless an operator deletes it.
fn check_final(before: &Record, command: &Command, after: Option<&Record>, now: Timestamp) {
    let is_final = matches!(before.status, Status::Pinned { .. }) && before.expires_at > now;
    if is_final && !matches!(command, Command::Delete { .. }) {
        assert_eq!(after, Some(before), "a final record changed");
    }
}

/// S7: a live claim changes only by a command of its owner; a lapsed one also by a claim that takes over or stores the
/// lapse, or by a command that names the attempt.
fn check_fence(before: &Record, command: &Command, after: Option<&Record>, now: Timestamp) {
    if before.state() != State::InProgress || after == Some(before) {
        return;
    }
    let by_owner = named_nonce(command) == before.fence.nonce;
    let by_operator = matches!(command, Command::Settle { .. } | Command::Delete { .. });
    if before.is_lapsed(now) {
        assert!(by_owner || matches!(command, Command::Claim(_)), "a lapsed claim changed by {command:?}");
    } else {
        assert!(by_owner && !by_operator, "a live claim changed by {command:?}");
    }
}

/// At most once: only a claim with `OnLapse::Rerun` takes over from an owner that is gone.
fn check_takeover(before: &Record, command: &Command, after: Option<&Record>, now: Timestamp) {
    let (Command::Claim(ask), Some(after)) = (command, after) else { return };
    let unknown = before.state_at(now) == State::Uncertain;
    if unknown && after.fence.nonce != before.fence.nonce {
        assert_eq!(ask.on_lapse, OnLapse::Rerun, "a lapsed claim was taken over");
        assert_eq!(after.takeovers, before.takeovers + 1, "a takeover was not counted");
        assert!(after.takeovers < ask.attempts_max, "more attempts in a row than allowed");
    }
}

/// Attempt numbers never decrease while a record exists, and every new owner has a higher one.
fn check_attempts(before: &Record, after: Option<&Record>, now: Timestamp) {
    let Some(after) = after.filter(|_| due(before, now) != Some(Due::Expired)) else { return };
    let grown = after.fence.attempt - before.fence.attempt;
    let acquired = after.state() == State::InProgress && after.fence.nonce != before.fence.nonce;
    assert_eq!(grown, u32::from(acquired), "attempts went from {before:?} to {after:?}");
    assert_eq!(after.created_at, before.created_at);
}

/// The answer matches the record after the command.
fn check_answer(answer: &Answer, command: &Command, after: Option<&Record>, now: Timestamp) {
    match answer {
        Answer::Claim(Claim::Acquired(lease)) => {
            let record = after.expect("an acquired key has a record");
            assert_eq!((record.fence, record.state_at(now)), (lease.fence, State::InProgress));
        }
        Answer::Claim(Claim::Replay { recorded, .. }) => {
            assert_eq!(after.and_then(Record::recorded), Some(recorded));
        }
        Answer::Claim(Claim::Uncertain { fence, .. }) => {
            let record = after.expect("an uncertain key has a record");
            assert_eq!((record.fence, record.state()), (*fence, State::Uncertain));
        }
        Answer::Fenced(Fenced::Applied) => {
            assert_eq!(after.map(|record| record.fence.nonce), Some(named_nonce(command)));
        }
        Answer::Settled(Settled::Applied) => {
            let Command::Settle { settlement, .. } = command else { panic!("{command:?}") };
            assert_eq!(after.map(|record| record.fence.nonce), Some(settlement.nonce));
        }
        _ => {}
    }
}

/// Repeating the command, as after a lost answer, changes nothing and answers the same.
fn check_repeat(answer: &Answer, command: &Command, record: Option<&Record>, now: Timestamp) {
    let again = decide(record, command, now);
    match (answer, &again.answer) {
        // A repeated deletion answers absent; no caller executes anything because of it.
        (Answer::Deleted(_), _) => {}
        (_, repeated) => assert_eq!(repeated, answer, "{command:?}"),
    }
    assert_eq!(after(record, again.change).as_ref(), record, "{command:?}");
}

fn walk(steps: Vec<Step>) {
    let mut now = Timestamp::from_millis(1_000_000);
    let mut record: Option<Record> = None;
    for step in steps {
        match step {
            Step::Wait(span) => now = now.after(span),
            Step::Restart => {
                if let Some(before) = record.take() {
                    let change = restart(&before, now);
                    let after = after(Some(&before), change);
                    assert_ne!(after.as_ref().map(Record::state), Some(State::InProgress));
                    check_attempts(&before, after.as_ref(), now);
                    record = after;
                }
            }
            Step::Sweep => {
                if let Some(due) = record.as_ref().and_then(|record| due(record, now)) {
                    let swept = record.take().expect("only a record can be due");
                    assert!(swept.expires_at <= now, "swept before its expiry");
                    match due {
                        Due::Expired => {
                            assert!(swept.state().is_terminal() || swept.state() == State::Released)
                        }
                        Due::Dropped => assert_eq!(swept.state_at(now), State::Uncertain),
                    }
                }
            }
            Step::Send(command) => {
                let Decision { change, answer } = decide(record.as_ref(), &command, now);
                let after = after(record.as_ref(), change);
                if let Some(before) = &record {
                    check_final(before, &command, after.as_ref(), now);
                    check_fence(before, &command, after.as_ref(), now);
                    check_takeover(before, &command, after.as_ref(), now);
                    check_attempts(before, after.as_ref(), now);
                }
                check_answer(&answer, &command, after.as_ref(), now);
                check_repeat(&answer, &command, after.as_ref(), now);
                record = after;
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn promises_hold_on_every_walk(steps in prop::collection::vec(any_step(), 1..60)) {
        walk(steps);
    }
}
