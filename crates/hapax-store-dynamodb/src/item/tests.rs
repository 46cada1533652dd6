use std::time::Duration;

use hapax_core::{
    Class, Fence, Fingerprint, Format, Key, Nonce, Reason, Record, Recorded, Scope, ScopedKey, Status,
    Timestamp,
};
use serde_json::{Value, json};

use super::{CHUNK_BYTES, INLINE_BYTES_MAX, StoredOutcome, StoredRecord, Version, binary, number};

const NOW: Timestamp = Timestamp::from_millis(1_794_774_600_000);
const LEASE: Duration = Duration::from_secs(30);

fn record(status: Status) -> Record {
    Record {
        key: ScopedKey::new(Scope::new("POST /orders").principal("alice"), &Key::new("order-1").unwrap()),
        fingerprint: Fingerprint::empty(),
        fence: Fence { nonce: Nonce::from_bytes([7; 16]), attempt: 3 },
        takeovers: 1,
        status,
        created_at: NOW,
        updated_at: NOW,
        expires_at: NOW.after(LEASE * 2),
    }
}

fn pinned(bytes: usize) -> Record {
    record(Status::Pinned { recorded: Recorded::new(Class::Error, Format::HTTP, vec![1; bytes]) })
}

#[test]
fn every_status_round_trips() {
    let statuses = [
        Status::InProgress { lease_until: NOW.after(LEASE) },
        Status::Pinned { recorded: Recorded::new(Class::Success, Format::FUNCTION, "done") },
        Status::Uncertain { reason: Reason::Panicked },
        Status::Released { answered: None },
        Status::Released { answered: Some(Recorded::new(Class::Error, Format::HTTP, "later")) },
    ];
    for status in statuses {
        let record = record(status);
        let (stored, apart) = StoredRecord::new(record.clone(), Version::random(), NOW);
        assert_eq!(apart, None);
        let read = StoredRecord::read(&record.key.id, &stored.item()).unwrap();
        assert_eq!((read.version, read.lease), (stored.version, stored.lease));
        let whole = match &read.outcome {
            StoredOutcome::Inline(bytes) => read.with_outcome(bytes).unwrap(),
            _ => read.record.clone(),
        };
        assert_eq!(whole, record);
    }
}

#[test]
fn an_outcome_above_the_inline_limit_is_stored_in_chunks() {
    let (small, apart) = StoredRecord::new(pinned(INLINE_BYTES_MAX - 100), Version::random(), NOW);
    assert!(matches!(small.outcome, StoredOutcome::Inline(_)) && apart.is_none());
    let (large, apart) = StoredRecord::new(pinned(2 * CHUNK_BYTES + 1), Version::random(), NOW);
    assert_eq!(large.outcome, StoredOutcome::Chunks(3));
    assert!(apart.unwrap().len() > 2 * CHUNK_BYTES);
    assert!(large.item().get("outcome").is_none());
}

#[test]
fn the_ttl_is_two_days_after_the_expiry() {
    let (stored, _) = StoredRecord::new(pinned(0), Version::random(), NOW);
    let two_days_later = NOW.after(LEASE * 2).as_millis() / 1000 + 48 * 3600;
    assert_eq!(stored.item()["ttl"], number(two_days_later));
}

#[test]
fn a_modified_item_is_unreadable() {
    let (stored, _) = StoredRecord::new(pinned(4), Version::random(), NOW);
    let id = stored.record.key.id;
    let changes: [(&str, Option<Value>); 9] = [
        ("layout", Some(number(2))),
        ("layout", None),
        ("id", Some(json!({"S": "another"}))),
        ("version", Some(binary(b"short"))),
        ("head", Some(json!({"B": "no base 64"}))),
        ("head", Some(binary(b"damage"))),
        ("head", None),
        ("outcome", None),
        ("chunks", Some(number(1))),
    ];
    for (name, value) in changes {
        let mut item = stored.item();
        match &value {
            Some(value) => item[name] = value.clone(),
            None => drop(item.as_object_mut().unwrap().remove(name)),
        }
        assert!(StoredRecord::read(&id, &item).is_err(), "{name} is {value:?}");
    }
    let (claim, _) = StoredRecord::new(
        record(Status::InProgress { lease_until: NOW.after(LEASE) }),
        Version::random(),
        NOW,
    );
    let mut item = claim.item();
    item.as_object_mut().unwrap().remove("lease_ms");
    assert!(StoredRecord::read(&id, &item).is_err(), "a claim without a lease");
    for item in [json!(null), json!([]), json!({"id": 7}), json!("text")] {
        assert!(StoredRecord::read(&id, &item).is_err(), "{item}");
    }
}
