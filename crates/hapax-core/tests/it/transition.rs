//! Every state and every command, pair by pair, as tables.
//!
//! It is second 1000. The record, if there is one, holds the nonce `a` and is the second attempt. A table has a line
//! for every state: the state, the answer, the change of the record. `b3` is the third attempt, with the nonce `b`; the
//! three numbers at the end of a record are its times of creation, last change and expiry.

use std::time::Duration;

use hapax_core::transition::{Answer, Change, Command, Decision, Due, decide, due, restart};
use hapax_core::{
    Claim, ClaimRequest, Class, Deleted, Fence, Fenced, Fingerprint, Format, Key, Lease, Nonce, OnLapse,
    Reason, Record, Recorded, Scope, ScopedKey, Settled, Settlement, Status, Timestamp, Verdict,
};

const NOW: Timestamp = second(1000);
const A: Nonce = Nonce::from_bytes([b'a'; 16]);
const B: Nonce = Nonce::from_bytes([b'b'; 16]);
const S: Nonce = Nonce::from_bytes([b's'; 16]);

const fn second(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

fn key() -> ScopedKey {
    ScopedKey::new(Scope::new("pay"), &Key::new("k").unwrap())
}

fn fingerprint(of: &str) -> Fingerprint {
    Fingerprint::builder().part("body", of.as_bytes()).build()
}

fn outcome(class: Class, payload: &'static str) -> Recorded {
    Recorded::new(class, Format::FUNCTION, payload)
}

fn states() -> [(&'static str, Option<Record>); 11] {
    let record = |status, expires_at| {
        Some(Record {
            key: key(),
            fingerprint: fingerprint("same"),
            fence: Fence { nonce: A, attempt: 2 },
            takeovers: 1,
            status,
            created_at: second(800),
            updated_at: second(900),
            expires_at,
        })
    };
    let later = second(5000);
    let live = Status::InProgress { lease_until: second(1010) };
    let lapsed = Status::InProgress { lease_until: NOW };
    let completed = Status::Pinned { recorded: outcome(Class::Success, "done") };
    let failed = Status::Pinned { recorded: outcome(Class::Error, "no") };
    let uncertain = Status::Uncertain { reason: Reason::Panicked };
    let released = Status::Released { answered: Some(outcome(Class::Error, "busy")) };
    [
        ("absent", None),
        ("in progress", record(live.clone(), later)),
        ("in progress, old", record(live, NOW)),
        ("lapsed", record(lapsed, later)),
        ("completed", record(completed.clone(), later)),
        ("failed", record(failed, later)),
        ("completed, expired", record(completed, NOW)),
        ("uncertain", record(uncertain.clone(), later)),
        ("uncertain, old", record(uncertain, NOW)),
        ("released", record(released.clone(), later)),
        ("released, expired", record(released, NOW)),
    ]
}

fn ask(nonce: Nonce) -> ClaimRequest {
    ClaimRequest {
        key: key(),
        fingerprint: fingerprint("same"),
        nonce,
        lease: Duration::from_secs(30),
        on_lapse: OnLapse::Uncertain,
        attempts_max: 3,
        uncertain_retention: Duration::from_secs(2000),
    }
}

fn lease(nonce: Nonce) -> Lease {
    Lease { id: key().id, fence: Fence { nonce, attempt: 2 }, length: Duration::from_secs(30) }
}

fn complete(nonce: Nonce) -> Command {
    Command::Complete {
        lease: lease(nonce),
        done: outcome(Class::Success, "new"),
        retention: Duration::from_secs(3000),
    }
}

fn settle(attempt: Nonce, nonce: Nonce, verdict: Verdict) -> Command {
    Command::Settle { id: key().id, settlement: Settlement::new(attempt, verdict).with_nonce(nonce) }
}

/// Runs the command in every state and compares with the table.
#[track_caller]
fn check(command: &Command, table: &str) {
    let got: Vec<_> = states()
        .iter()
        .map(|(state, record)| {
            let Decision { change, answer } = decide(record.as_ref(), command, NOW);
            format!("{state} | {} | {}", show_answer(&answer), show_change(&change))
        })
        .collect();
    let expected: Vec<_> = table
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| line.split('|').map(str::trim).collect::<Vec<_>>().join(" | "))
        .collect();
    assert_eq!(got.len(), expected.len(), "the table needs a line for every state");
    for (got, expected) in got.iter().zip(&expected) {
        assert_eq!(got, expected);
    }
}

fn show_answer(answer: &Answer) -> String {
    match answer {
        Answer::Claim(Claim::Acquired(lease)) => {
            assert_eq!((lease.id, lease.length), (key().id, Duration::from_secs(30)));
            format!("acquired {}", show_fence(&lease.fence))
        }
        Answer::Claim(Claim::Busy { lease_left }) => format!("busy for {}", lease_left.as_secs()),
        Answer::Claim(Claim::Mismatch) => "mismatch".into(),
        Answer::Claim(Claim::Replay { recorded, remaining }) => {
            format!("replay {} for {}", show_outcome(recorded), remaining.as_secs())
        }
        Answer::Claim(Claim::Uncertain { fence, reason }) => {
            format!("uncertain {} {}", show_fence(fence), reason.name())
        }
        Answer::Claim(Claim::Unreadable) => "unreadable".into(),
        Answer::Fenced(Fenced::Applied)
        | Answer::Settled(Settled::Applied)
        | Answer::Deleted(Deleted::Applied) => "applied".into(),
        Answer::Fenced(Fenced::Lost) => "lost".into(),
        Answer::Settled(Settled::NotUncertain(state)) => format!("not uncertain but {state}"),
        Answer::Settled(Settled::Changed) | Answer::Deleted(Deleted::Changed) => "changed".into(),
        Answer::Settled(Settled::Absent) | Answer::Deleted(Deleted::Absent) => "absent".into(),
        Answer::Deleted(Deleted::InProgress) => "refused".into(),
    }
}

fn show_change(change: &Change) -> String {
    let record = match change {
        Change::Keep => return "keep".into(),
        Change::Remove => return "remove".into(),
        Change::Put(record) => record,
    };
    assert_eq!(record.key, key());
    let status = match &record.status {
        Status::InProgress { lease_until } => format!("in progress until {}", show_time(*lease_until)),
        Status::Pinned { recorded } => format!("pinned {}", show_outcome(recorded)),
        Status::Uncertain { reason } => format!("uncertain {}", reason.name()),
        Status::Released { answered } => {
            format!("released {}", answered.as_ref().map_or("-".into(), show_outcome))
        }
    };
    let Record { fence, created_at, updated_at, expires_at, .. } = &**record;
    let [created, updated, expires] = [created_at, updated_at, expires_at].map(|time| show_time(*time));
    let changed = if record.fingerprint == fingerprint("same") { "" } else { ", another request" };
    format!("{status}, {}, {created} {updated} {expires}{changed}", show_fence(fence))
}

fn show_time(time: Timestamp) -> String {
    (time.as_millis() / 1000).to_string()
}

fn show_fence(fence: &Fence) -> String {
    format!("{}{}", char::from(fence.nonce.as_bytes()[0]), fence.attempt)
}

fn show_outcome(recorded: &Recorded) -> String {
    format!("{:?} {}", recorded.class, std::str::from_utf8(&recorded.payload).unwrap())
}

#[test]
fn x_01_a_claim_with_a_new_nonce() {
    check(
        &Command::Claim(ask(B)),
        "
        absent             | acquired b1                  | in progress until 1030, b1, 1000 1000 3000
        in progress        | busy for 10                  | keep
        in progress, old   | busy for 10                  | keep
        lapsed             | uncertain a2 lapsed          | uncertain lapsed, a2, 800 1000 5000
        completed          | replay Success done for 4000 | keep
        failed             | replay Error no for 4000     | keep
        completed, expired | acquired b1                  | in progress until 1030, b1, 1000 1000 3000
        uncertain          | uncertain a2 panicked        | keep
        uncertain, old     | uncertain a2 panicked        | keep
        released           | acquired b3                  | in progress until 1030, b3, 800 1000 3000
        released, expired  | acquired b1                  | in progress until 1030, b1, 1000 1000 3000
        ",
    );
}

#[test]
fn d_05_a_claim_repeated_with_its_nonce() {
    check(
        &Command::Claim(ask(A)),
        "
        absent             | acquired a1                  | in progress until 1030, a1, 1000 1000 3000
        in progress        | acquired a2                  | in progress until 1030, a2, 800 900 5020
        in progress, old   | acquired a2                  | in progress until 1030, a2, 800 900 1020
        lapsed             | acquired a2                  | in progress until 1030, a2, 800 900 5030
        completed          | replay Success done for 4000 | keep
        failed             | replay Error no for 4000     | keep
        completed, expired | acquired a1                  | in progress until 1030, a1, 1000 1000 3000
        uncertain          | uncertain a2 panicked        | keep
        uncertain, old     | uncertain a2 panicked        | keep
        released           | busy for 0                   | keep
        released, expired  | acquired a1                  | in progress until 1030, a1, 1000 1000 3000
        ",
    );
}

#[test]
fn f_01_a_claim_for_another_request() {
    let other = ClaimRequest { fingerprint: fingerprint("other"), ..ask(B) };
    check(
        &Command::Claim(other),
        "
        absent             | acquired b1 | in progress until 1030, b1, 1000 1000 3000, another request
        in progress        | mismatch    | keep
        in progress, old   | mismatch    | keep
        lapsed             | mismatch    | keep
        completed          | mismatch    | keep
        failed             | mismatch    | keep
        completed, expired | acquired b1 | in progress until 1030, b1, 1000 1000 3000, another request
        uncertain          | mismatch    | keep
        uncertain, old     | mismatch    | keep
        released           | acquired b3 | in progress until 1030, b3, 800 1000 3000, another request
        released, expired  | acquired b1 | in progress until 1030, b1, 1000 1000 3000, another request
        ",
    );
}

#[test]
fn f_02_a_claim_with_a_fingerprint_that_cannot_be_compared() {
    let newer = Fingerprint::from_parts(2, *fingerprint("same").digest());
    check(
        &Command::Claim(ClaimRequest { fingerprint: newer, ..ask(B) }),
        "
        absent             | acquired b1 | in progress until 1030, b1, 1000 1000 3000, another request
        in progress        | unreadable  | keep
        in progress, old   | unreadable  | keep
        lapsed             | unreadable  | keep
        completed          | unreadable  | keep
        failed             | unreadable  | keep
        completed, expired | acquired b1 | in progress until 1030, b1, 1000 1000 3000, another request
        uncertain          | unreadable  | keep
        uncertain, old     | unreadable  | keep
        released           | acquired b3 | in progress until 1030, b3, 800 1000 3000, another request
        released, expired  | acquired b1 | in progress until 1030, b1, 1000 1000 3000, another request
        ",
    );
}

#[test]
fn x_04_a_claim_that_may_rerun() {
    check(
        &Command::Claim(ClaimRequest { on_lapse: OnLapse::Rerun, ..ask(B) }),
        "
        absent             | acquired b1                  | in progress until 1030, b1, 1000 1000 3000
        in progress        | busy for 10                  | keep
        in progress, old   | busy for 10                  | keep
        lapsed             | acquired b3                  | in progress until 1030, b3, 800 1000 3000
        completed          | replay Success done for 4000 | keep
        failed             | replay Error no for 4000     | keep
        completed, expired | acquired b1                  | in progress until 1030, b1, 1000 1000 3000
        uncertain          | acquired b3                  | in progress until 1030, b3, 800 1000 3000
        uncertain, old     | acquired b3                  | in progress until 1030, b3, 800 1000 3000
        released           | acquired b3                  | in progress until 1030, b3, 800 1000 3000
        released, expired  | acquired b1                  | in progress until 1030, b1, 1000 1000 3000
        ",
    );
}

#[test]
fn x_04_a_claim_that_may_rerun_after_the_last_attempt() {
    let capped = ClaimRequest { on_lapse: OnLapse::Rerun, attempts_max: 2, ..ask(B) };
    check(
        &Command::Claim(capped),
        "
        absent             | acquired b1                  | in progress until 1030, b1, 1000 1000 3000
        in progress        | busy for 10                  | keep
        in progress, old   | busy for 10                  | keep
        lapsed             | uncertain a2 lapsed          | uncertain lapsed, a2, 800 1000 5000
        completed          | replay Success done for 4000 | keep
        failed             | replay Error no for 4000     | keep
        completed, expired | acquired b1                  | in progress until 1030, b1, 1000 1000 3000
        uncertain          | uncertain a2 panicked        | keep
        uncertain, old     | uncertain a2 panicked        | keep
        released           | acquired b3                  | in progress until 1030, b3, 800 1000 3000
        released, expired  | acquired b1                  | in progress until 1030, b1, 1000 1000 3000
        ",
    );
}

#[test]
fn x_03_a_renewal() {
    check(
        &Command::Renew(lease(A)),
        "
        absent             | lost    | keep
        in progress        | applied | in progress until 1030, a2, 800 900 5020
        in progress, old   | applied | in progress until 1030, a2, 800 900 1020
        lapsed             | applied | in progress until 1030, a2, 800 900 5030
        completed          | lost    | keep
        failed             | lost    | keep
        completed, expired | lost    | keep
        uncertain          | lost    | keep
        uncertain, old     | lost    | keep
        released           | lost    | keep
        released, expired  | lost    | keep
        ",
    );
}

#[test]
fn x_02_a_completion() {
    check(
        &complete(A),
        "
        absent             | lost    | keep
        in progress        | applied | pinned Success new, a2, 800 1000 4000
        in progress, old   | applied | pinned Success new, a2, 800 1000 4000
        lapsed             | applied | pinned Success new, a2, 800 1000 4000
        completed          | applied | keep
        failed             | applied | keep
        completed, expired | applied | keep
        uncertain          | applied | pinned Success new, a2, 800 1000 4000
        uncertain, old     | applied | pinned Success new, a2, 800 1000 4000
        released           | lost    | keep
        released, expired  | lost    | keep
        ",
    );
}

#[test]
fn x_09_a_release() {
    let answered = Some(outcome(Class::Error, "later"));
    check(
        &Command::Release { lease: lease(A), answered },
        "
        absent             | lost    | keep
        in progress        | applied | released Error later, a2, 800 1000 1600
        in progress, old   | applied | released Error later, a2, 800 1000 1600
        lapsed             | applied | released Error later, a2, 800 1000 1600
        completed          | lost    | keep
        failed             | lost    | keep
        completed, expired | lost    | keep
        uncertain          | applied | released Error later, a2, 800 1000 1600
        uncertain, old     | applied | released Error later, a2, 800 1000 1600
        released           | applied | keep
        released, expired  | applied | keep
        ",
    );
}

#[test]
fn x_07_an_abandoned_claim() {
    check(
        &Command::Abandon { lease: lease(A), reason: Reason::Declared },
        "
        absent             | lost    | keep
        in progress        | applied | uncertain declared, a2, 800 1000 5000
        in progress, old   | applied | uncertain declared, a2, 800 1000 1000
        lapsed             | applied | uncertain declared, a2, 800 1000 5000
        completed          | lost    | keep
        failed             | lost    | keep
        completed, expired | lost    | keep
        uncertain          | applied | keep
        uncertain, old     | applied | keep
        released           | lost    | keep
        released, expired  | lost    | keep
        ",
    );
}

#[test]
fn d_07_settled_as_applied() {
    let recorded = outcome(Class::Success, "seen");
    check(
        &settle(A, S, Verdict::Applied { recorded, retention: Duration::from_secs(3000) }),
        "
        absent             | absent                        | keep
        in progress        | not uncertain but in_progress | keep
        in progress, old   | not uncertain but in_progress | keep
        lapsed             | applied                       | pinned Success seen, s2, 800 1000 4000
        completed          | not uncertain but completed   | keep
        failed             | not uncertain but failed      | keep
        completed, expired | not uncertain but completed   | keep
        uncertain          | applied                       | pinned Success seen, s2, 800 1000 4000
        uncertain, old     | applied                       | pinned Success seen, s2, 800 1000 4000
        released           | not uncertain but released    | keep
        released, expired  | not uncertain but released    | keep
        ",
    );
}

#[test]
fn d_07_settled_as_not_applied() {
    check(
        &settle(A, S, Verdict::NotApplied),
        "
        absent             | absent                        | keep
        in progress        | not uncertain but in_progress | keep
        in progress, old   | not uncertain but in_progress | keep
        lapsed             | applied                       | released -, s2, 800 1000 1600
        completed          | not uncertain but completed   | keep
        failed             | not uncertain but failed      | keep
        completed, expired | not uncertain but completed   | keep
        uncertain          | applied                       | released -, s2, 800 1000 1600
        uncertain, old     | applied                       | released -, s2, 800 1000 1600
        released           | not uncertain but released    | keep
        released, expired  | not uncertain but released    | keep
        ",
    );
}

#[test]
fn d_07_a_settlement_of_another_attempt() {
    check(
        &settle(B, S, Verdict::NotApplied),
        "
        absent             | absent                        | keep
        in progress        | not uncertain but in_progress | keep
        in progress, old   | not uncertain but in_progress | keep
        lapsed             | changed                       | keep
        completed          | not uncertain but completed   | keep
        failed             | not uncertain but failed      | keep
        completed, expired | not uncertain but completed   | keep
        uncertain          | changed                       | keep
        uncertain, old     | changed                       | keep
        released           | not uncertain but released    | keep
        released, expired  | not uncertain but released    | keep
        ",
    );
}

#[test]
fn d_07_a_settlement_repeated_with_its_nonce() {
    check(
        &settle(B, A, Verdict::NotApplied),
        "
        absent             | absent  | keep
        in progress        | applied | keep
        in progress, old   | applied | keep
        lapsed             | applied | keep
        completed          | applied | keep
        failed             | applied | keep
        completed, expired | applied | keep
        uncertain          | applied | keep
        uncertain, old     | applied | keep
        released           | applied | keep
        released, expired  | applied | keep
        ",
    );
}

#[test]
fn d_07_a_deletion() {
    check(
        &Command::Delete { id: key().id, nonce: A },
        "
        absent             | absent  | keep
        in progress        | refused | keep
        in progress, old   | refused | keep
        lapsed             | applied | remove
        completed          | applied | remove
        failed             | applied | remove
        completed, expired | applied | remove
        uncertain          | applied | remove
        uncertain, old     | applied | remove
        released           | applied | remove
        released, expired  | applied | remove
        ",
    );
}

#[test]
fn d_07_a_deletion_of_another_attempt() {
    check(
        &Command::Delete { id: key().id, nonce: B },
        "
        absent             | absent  | keep
        in progress        | changed | keep
        in progress, old   | changed | keep
        lapsed             | changed | keep
        completed          | changed | keep
        failed             | changed | keep
        completed, expired | changed | keep
        uncertain          | changed | keep
        uncertain, old     | changed | keep
        released           | changed | keep
        released, expired  | changed | keep
        ",
    );
}

/// A write that names another attempt changes nothing, in any state.
#[test]
fn x_02_another_nonce_changes_nothing() {
    let foreign = [
        Command::Renew(lease(B)),
        complete(B),
        Command::Release { lease: lease(B), answered: None },
        Command::Abandon { lease: lease(B), reason: Reason::Panicked },
    ];
    for (state, record) in states() {
        for command in &foreign {
            let decision = decide(record.as_ref(), command, NOW);
            assert_eq!(decision.answer, Answer::Fenced(Fenced::Lost), "{state}: {command:?}");
            assert_eq!(decision.change, Change::Keep, "{state}: {command:?}");
        }
    }
}

/// Only the nonce is compared: a store that lost its latest writes may assign an attempt number twice.
#[test]
fn x_02_the_nonce_alone_is_the_fence() {
    let (_, in_progress) = &states()[1];
    let lease = Lease { fence: Fence { nonce: A, attempt: 9 }, ..lease(A) };
    let decision = decide(in_progress.as_ref(), &Command::Renew(lease), NOW);
    assert_eq!(decision.answer, Answer::Fenced(Fenced::Applied));
}

#[test]
fn d_01_what_a_sweep_may_remove() {
    let expected = [
        ("in progress", None),
        ("in progress, old", None),
        ("lapsed", None),
        ("completed", None),
        ("failed", None),
        ("completed, expired", Some(Due::Expired)),
        ("uncertain", None),
        ("uncertain, old", Some(Due::Dropped)),
        ("released", None),
        ("released, expired", Some(Due::Expired)),
    ];
    let got = states().map(|(state, record)| (state, record.and_then(|record| due(&record, NOW))));
    assert_eq!(got[1..], expected);
}

#[test]
fn x_03_a_lapsed_claim_past_its_retention_may_be_swept() {
    let (_, old) = &states()[2];
    let mut lapsed = old.clone().unwrap();
    lapsed.status = Status::InProgress { lease_until: NOW };
    assert_eq!(due(&lapsed, NOW), Some(Due::Dropped));
}

#[test]
fn a_restart_leaves_no_claim_in_progress() {
    for (state, record) in states() {
        let Some(record) = record else { continue };
        let expected = match state {
            "in progress" | "lapsed" => "uncertain restarted, a2, 800 1000 5000",
            "in progress, old" => "uncertain restarted, a2, 800 1000 1000",
            _ => "keep",
        };
        assert_eq!(show_change(&restart(&record, NOW)), expected, "{state}");
    }
}

#[test]
fn a_command_names_its_record() {
    let commands = [
        Command::Claim(ask(A)),
        Command::Renew(lease(A)),
        complete(A),
        Command::Release { lease: lease(A), answered: None },
        Command::Abandon { lease: lease(A), reason: Reason::Declared },
        settle(A, S, Verdict::NotApplied),
        Command::Delete { id: key().id, nonce: A },
    ];
    for command in commands {
        assert_eq!(*command.id(), key().id);
    }
}

#[test]
fn x_03_uncertain_retention_counts_from_the_last_renewal() {
    let put = |decision: Decision<Answer>| match decision.change {
        Change::Put(record) => *record,
        _ => panic!("the record changes"),
    };
    let ask = ClaimRequest { uncertain_retention: Duration::from_secs(60), ..ask(A) };
    let mut record = put(decide(None, &Command::Claim(ask), second(0)));
    for renewed_at in (10..=1000).step_by(10) {
        record = put(decide(Some(&record), &Command::Renew(lease(A)), second(renewed_at)));
    }
    let abandon = Command::Abandon { lease: lease(A), reason: Reason::Panicked };
    record = put(decide(Some(&record), &abandon, second(1001)));
    assert_eq!([second(1059), second(1060)].map(|now| due(&record, now)), [None, Some(Due::Dropped)]);
}
