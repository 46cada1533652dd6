use std::time::Duration;

use hapax_core::{Class, Fence, Fingerprint, Format, Key, Nonce, Record, Recorded, Scope, ScopedKey, Status};

use super::*;
use crate::view::Payload;

const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);

fn record(status: Status) -> RecordView {
    seen(status, NOW)
}

fn seen(status: Status, now: Timestamp) -> RecordView {
    let record = Record {
        key: ScopedKey::new(Scope::new("charge"), &Key::new("k").unwrap()),
        fingerprint: Fingerprint::from_parts(1, [0; 32]),
        fence: Fence { nonce: Nonce::from_bytes([1; 16]), attempt: 2 },
        takeovers: 1,
        status,
        created_at: Timestamp::from_millis(NOW.as_millis() - 60_000),
        updated_at: Timestamp::from_millis(NOW.as_millis() - 30_000),
        expires_at: NOW.after(Duration::from_secs(3600)),
    };
    RecordView::new(&record, now, Payload::Hidden)
}

fn lines(status: Status) -> Vec<String> {
    timeline(&record(status), NOW).into_iter().map(|event| event.line(NOW)).collect()
}

#[test]
fn a_claim_in_progress_is_shown_with_its_lease() {
    let lines = lines(Status::InProgress { lease_until: NOW.after(Duration::from_secs(20)) });
    assert_eq!(
        lines,
        [
            "2026-09-21T14:12:20.000Z  1m ago        first claimed",
            "2026-09-21T14:12:50.000Z  30s ago       claimed by attempt 2",
            "2026-09-21T14:13:40.000Z  in 20s        the lease ends unless its owner renews it",
            "2026-09-21T15:13:20.000Z  in 1h         a sweep removes the record unless it is settled",
        ]
    );
}

#[test]
fn a_lapsed_claim_is_shown_as_uncertain() {
    let record = record(Status::InProgress { lease_until: NOW });
    assert!(timeline(&record, NOW)[2].what.contains("lapsed"));
    assert_eq!(record.state_words(), "uncertain (lapsed)");
}

#[test]
fn every_reason_of_uncertainty_is_shown() {
    for reason in Reason::ALL {
        let lines = lines(Status::Uncertain { reason });
        assert!(lines[1].contains(reason.words()), "{lines:?}");
    }
}

#[test]
fn a_finished_record_is_shown_with_its_outcome() {
    let failed = Recorded::new(Class::Error, Format::FUNCTION, "\"no\"");
    assert!(
        lines(Status::Pinned { recorded: failed.clone() })[1]
            .ends_with("pinned after attempt 2, class error")
    );
    assert!(lines(Status::Released { answered: Some(failed) })[1].contains("asks for a retry"));
    assert!(lines(Status::Released { answered: None })[1].contains("did nothing"));
}

#[test]
fn an_expired_record_is_shown_as_such() {
    let late = NOW.after(Duration::from_secs(3601));
    assert!(end_words(&seen(Status::Uncertain { reason: Reason::Lapsed }, late), late).starts_with("due"));
    assert!(end_words(&seen(Status::Released { answered: None }, late), late).contains("over"));
}
