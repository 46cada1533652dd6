use std::time::Duration;

use hapax_core::{
    ClaimRequest, Fingerprint, Key, Nonce, OnLapse, Scope, ScopedKey, State, Status, Timestamp,
};

use super::{SPAN_MS_MAX, Stored, first_claim, span_ms};

fn ask() -> ClaimRequest {
    let scope = Scope::new("POST /orders").in_namespace("shop").principal("alice");
    ClaimRequest {
        key: ScopedKey::new(scope, &Key::new("order-1").unwrap()),
        fingerprint: Fingerprint::from_parts(1, [7; 32]),
        nonce: Nonce::from_bytes([9; 16]),
        lease: Duration::from_secs(30),
        on_lapse: OnLapse::Uncertain,
        attempts_max: 3,
        uncertain_retention: Duration::from_secs(60),
    }
}

fn key(ask: &ClaimRequest) -> String {
    format!("shop:{}", ask.key.id)
}

#[test]
fn a_first_claim_derives_its_times_from_the_keys_expiry() {
    let ask = ask();
    let key = key(&ask);
    let (value, keep_ms) = first_claim(&ask, &key);
    assert_eq!(keep_ms, 60_000);
    let stored = Stored::open(&key, &value).unwrap();
    let record = stored.record(ask.key.id, 1_000_000).unwrap();
    assert_eq!(
        (record.key, record.fingerprint, record.fence.nonce),
        (ask.key.clone(), ask.fingerprint, ask.nonce)
    );
    assert_eq!(
        (record.created_at, record.expires_at),
        (Timestamp::from_millis(940_000), Timestamp::from_millis(1_000_000))
    );
    assert_eq!(record.status, Status::InProgress { lease_until: Timestamp::from_millis(970_000) });
    assert!(stored.record(ask.key.id, -1).is_err(), "without an expiry the times are unknown");
}

#[test]
fn a_claim_is_kept_at_least_for_its_lease() {
    let ask = ClaimRequest { uncertain_retention: Duration::from_secs(10), ..ask() };
    let key = key(&ask);
    let (value, keep_ms) = first_claim(&ask, &key);
    assert_eq!(keep_ms, 30_000);
    let record = Stored::open(&key, &value).unwrap().record(ask.key.id, 1_000_000).unwrap();
    assert_eq!(record.created_at, Timestamp::from_millis(970_000));
    assert_eq!(record.expires_at, Timestamp::from_millis(980_000));
}

#[test]
fn any_changed_byte_is_noticed() {
    let ask = ask();
    let key = key(&ask);
    let (value, _) = first_claim(&ask, &key);
    for at in 0..value.len() {
        let mut changed = value.clone();
        changed[at] ^= 1;
        assert!(Stored::open(&key, &changed).is_none(), "byte {at}");
        assert!(Stored::open(&key, &value[..at]).is_none(), "{at} bytes");
    }
    for at in key.len() - super::ID_DIGITS..key.len() {
        let other = if key.as_bytes()[at] == b'0' { "1" } else { "0" };
        let mut changed = key.clone();
        changed.replace_range(at..=at, other);
        assert!(Stored::open(&changed, &value).is_none(), "digit {at} of another key");
    }
    assert!(Stored::open(key.trim_start_matches("shop:"), &value).is_some(), "the prefix is not sealed");
}

#[test]
fn every_state_and_reason_round_trips() {
    for state in State::ALL {
        assert_eq!(super::state(super::state_number(state)), Some(state));
    }
    for reason in hapax_core::Reason::ALL {
        assert_eq!(super::reason(super::reason_number(reason)), Some(reason));
    }
    assert_eq!((super::state(0), super::state(6), super::reason(0)), (None, None, None));
}

#[test]
fn spans_stay_exact_in_lua() {
    assert_eq!(span_ms(Duration::from_millis(1500)), 1500);
    assert_eq!(span_ms(Duration::MAX), SPAN_MS_MAX);
}
