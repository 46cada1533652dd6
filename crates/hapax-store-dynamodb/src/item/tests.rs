use std::time::Duration;

use hapax_core::{
    Class, Fence, Fingerprint, Format, Key, Nonce, Reason, Record, Recorded, Scope, ScopedKey, Status,
    Timestamp,
};
use serde_json::{Value, json};

use super::{CHUNK_BYTES, Held, INLINE_BYTES_MAX, Outcome, Version, binary, number};

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
fn every_status_reads_back() {
    let statuses = [
        Status::InProgress { lease_until: NOW.after(LEASE) },
        Status::Pinned { recorded: Recorded::new(Class::Success, Format::FUNCTION, "done") },
        Status::Uncertain { reason: Reason::Panicked },
        Status::Released { answered: None },
        Status::Released { answered: Some(Recorded::new(Class::Error, Format::HTTP, "later")) },
    ];
    for status in statuses {
        let record = record(status);
        let (held, apart) = Held::new(record.clone(), Version::random(), NOW);
        assert_eq!(apart, None);
        let read = Held::read(&record.key.id, &held.item()).unwrap();
        assert_eq!((read.version, read.lease), (held.version, held.lease));
        let whole = match &read.outcome {
            Outcome::Here(bytes) => read.with_outcome(bytes).unwrap(),
            _ => read.record.clone(),
        };
        assert_eq!(whole, record);
    }
}

#[test]
fn an_outcome_that_is_too_large_for_an_item_is_kept_apart() {
    let (small, apart) = Held::new(pinned(INLINE_BYTES_MAX - 100), Version::random(), NOW);
    assert!(matches!(small.outcome, Outcome::Here(_)) && apart.is_none());
    let (large, apart) = Held::new(pinned(2 * CHUNK_BYTES + 1), Version::random(), NOW);
    assert_eq!(large.outcome, Outcome::Chunks(3));
    assert!(apart.unwrap().len() > 2 * CHUNK_BYTES);
    assert!(large.item().get("outcome").is_none());
}

#[test]
fn what_removes_items_waits_two_days_longer() {
    let (held, _) = Held::new(pinned(0), Version::random(), NOW);
    let two_days_later = NOW.after(LEASE * 2).as_millis() / 1000 + 48 * 3600;
    assert_eq!(held.item()["ttl"], number(two_days_later));
}

#[test]
fn what_was_changed_by_others_is_unreadable() {
    let (held, _) = Held::new(pinned(4), Version::random(), NOW);
    let id = held.record.key.id;
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
        let mut item = held.item();
        match &value {
            Some(value) => item[name] = value.clone(),
            None => drop(item.as_object_mut().unwrap().remove(name)),
        }
        assert!(Held::read(&id, &item).is_err(), "{name} is {value:?}");
    }
    let (claim, _) =
        Held::new(record(Status::InProgress { lease_until: NOW.after(LEASE) }), Version::random(), NOW);
    let mut item = claim.item();
    item.as_object_mut().unwrap().remove("lease_ms");
    assert!(Held::read(&id, &item).is_err(), "a claim without a lease");
    for item in [json!(null), json!([]), json!({"id": 7}), json!("text")] {
        assert!(Held::read(&id, &item).is_err(), "{item}");
    }
}
