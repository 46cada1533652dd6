use std::time::Duration;

use hapax_core::{Class, Fence, Fingerprint, Key, Nonce, Scope, ScopedKey};

use super::*;

const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);

fn record(status: Status) -> Record {
    Record {
        key: ScopedKey::new(Scope::new("charge"), &Key::new("k").unwrap()),
        fingerprint: Fingerprint::from_parts(1, [0; 32]),
        fence: Fence { nonce: Nonce::from_bytes([1; 16]), attempt: 2 },
        takeovers: 1,
        status,
        created_at: Timestamp::from_millis(NOW.as_millis() - 60_000),
        updated_at: Timestamp::from_millis(NOW.as_millis() - 30_000),
        expires_at: NOW.after(Duration::from_secs(3600)),
    }
}

fn told(status: Status) -> Vec<String> {
    story(&record(status), NOW).into_iter().map(|event| event.line(NOW)).collect()
}

#[test]
fn a_claim_at_work_is_told_with_its_lease() {
    let lines = told(Status::InProgress { lease_until: NOW.after(Duration::from_secs(20)) });
    assert_eq!(
        lines,
        [
            "2026-09-21T14:12:20.000Z  1m ago        first claimed",
            "2026-09-21T14:12:50.000Z  30s ago       claimed by attempt 2",
            "2026-09-21T14:13:40.000Z  in 20s        the lease ends unless its owner renews it",
            "2026-09-21T15:13:20.000Z  in 1h         if nobody settles it, a sweep drops the record",
        ]
    );
}

#[test]
fn a_lapsed_claim_is_told_as_uncertain() {
    let record = record(Status::InProgress { lease_until: NOW });
    assert!(story(&record, NOW)[2].what.contains("lapsed"));
    assert!(head(&record, NOW).contains(&"state      uncertain (lapsed)".to_owned()));
}

#[test]
fn every_reason_of_uncertainty_has_its_words() {
    for reason in Reason::ALL {
        let lines = told(Status::Uncertain { reason });
        assert!(lines[1].contains(reason_words(reason)), "{lines:?}");
    }
}

#[test]
fn a_finished_record_is_told_with_its_outcome() {
    let failed = Recorded::new(Class::Error, Format::FUNCTION, "\"no\"");
    assert!(
        told(Status::Pinned { recorded: failed.clone() })[1].ends_with("pinned after attempt 2, class error")
    );
    assert!(told(Status::Released { answered: Some(failed) })[1].contains("asks for a retry"));
    assert!(told(Status::Released { answered: None })[1].contains("did nothing"));
}

#[test]
fn a_record_whose_time_is_over_says_so() {
    let late =
        record(Status::Uncertain { reason: Reason::Lapsed }).expires_at.after(Duration::from_millis(1));
    assert!(end_words(&record(Status::Uncertain { reason: Reason::Lapsed }), late).starts_with("due"));
    assert!(end_words(&record(Status::Released { answered: None }), late).contains("over"));
}

#[test]
fn a_payload_is_shown_without_obeying_it() {
    let text = Recorded::new(Class::Success, Format::OPERATOR, "a\n\u{1b}[2Jb");
    assert_eq!(content(&text), ["payload\na\n\\u{1b}[2Jb"]);
    let bytes = Recorded::new(Class::Success, Format::HTTP, vec![0xff, 0x00]);
    assert_eq!(content(&bytes), ["payload (hexadecimal)\nff00"]);
}
