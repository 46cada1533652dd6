use std::sync::Arc;
use std::time::Duration;

use hapax_core::key::PrincipalHash;
use hapax_core::{Key, RecordId, Scope, ScopedKey};
use tokio::time::Instant;

use super::{KEYS_MAX, Limit, LimitCounters, LimitExceeded, LimitRules, OPEN_CLAIMS_RETRY_AFTER};

const SECOND: Duration = Duration::from_secs(1);

fn id(number: u32) -> RecordId {
    ScopedKey::new(Scope::new("x"), &Key::new(number.to_string()).unwrap()).id
}

fn caller(number: u8) -> Option<PrincipalHash> {
    Some(PrincipalHash::from_bytes([number; 16]))
}

fn at_a_rate(rate: &str) -> LimitRules {
    LimitRules { attempts_per_key: Some(rate.parse().unwrap()), ..LimitRules::default() }
}

#[test]
fn s_06_a_key_may_burst_and_then_continue_at_the_allowed_rate() {
    let (limits, rules, start) = (LimitCounters::new(), at_a_rate("3/60s"), Instant::now());
    for _ in 0..3 {
        assert_eq!(limits.attempt(&rules, &id(1), start), Ok(()));
    }
    let too_many = |seconds| Err(LimitExceeded { by: Limit::AttemptsPerKey, retry_after: seconds * SECOND });
    assert_eq!(limits.attempt(&rules, &id(1), start), too_many(20));
    // A refused attempt does not delay the next one.
    assert_eq!(limits.attempt(&rules, &id(1), start + 5 * SECOND), too_many(15));
    assert_eq!(limits.attempt(&rules, &id(1), start + 20 * SECOND), Ok(()));
    assert_eq!(limits.attempt(&rules, &id(1), start + 20 * SECOND), too_many(20));
    assert_eq!(limits.attempt(&rules, &id(2), start), Ok(()));
    for _ in 0..3 {
        assert_eq!(limits.attempt(&rules, &id(1), start + 100 * SECOND), Ok(()));
    }
    assert_eq!(limits.attempt(&rules, &id(1), start + 100 * SECOND), too_many(20));
}

#[test]
fn s_06_every_rate_allows_its_number_at_once() {
    for (rate, attempts) in [("1/1ms", 1), ("7/1s", 7), ("1000/1s", 1000), ("3/366d", 3)] {
        let (limits, rules, now) = (LimitCounters::new(), at_a_rate(rate), Instant::now());
        let allowed = (0..2 * attempts).filter(|_| limits.attempt(&rules, &id(1), now).is_ok()).count();
        assert_eq!(allowed, attempts, "{rate}");
    }
}

#[test]
fn s_06_remembered_keys_are_bounded() {
    let (limits, rules, now) = (LimitCounters::new(), at_a_rate("1/1h"), Instant::now());
    for number in 0..3 * KEYS_MAX as u32 {
        assert_eq!(limits.attempt(&rules, &RecordId::from_bytes(spread(number)), now), Ok(()));
    }
    assert!(limits.attempt(&rules, &RecordId::from_bytes(spread(3 * KEYS_MAX as u32 - 1)), now).is_err());
    assert_eq!(limits.attempt(&rules, &RecordId::from_bytes(spread(0)), now), Ok(()));
}

fn spread(number: u32) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    bytes
}

#[test]
fn s_06_a_caller_has_as_many_open_claims_as_allowed() {
    let limits = Arc::new(LimitCounters::new());
    let rules = LimitRules { open_claims_max: 2, ..LimitRules::default() };
    let first = limits.open(&rules, caller(1), id(1)).unwrap();
    let _second = limits.open(&rules, caller(1), id(2)).unwrap();
    let limited = LimitExceeded { by: Limit::OpenClaims, retry_after: OPEN_CLAIMS_RETRY_AFTER };
    assert_eq!(limits.open(&rules, caller(1), id(3)).unwrap_err(), limited);
    let _other = limits.open(&rules, caller(2), id(4)).unwrap();
    let _nobody = limits.open(&rules, None, id(5)).unwrap();
    drop(first);
    let third = limits.open(&rules, caller(1), id(6)).unwrap();
    assert_eq!(limits.open(&rules, caller(1), id(7)).unwrap_err(), limited);
    drop(third);
    assert!(limits.open(&rules, caller(1), id(8)).is_ok());
}

#[test]
fn s_06_a_caller_has_4096_open_claims_unless_the_route_says_otherwise() {
    let (limits, rules) = (Arc::new(LimitCounters::new()), LimitRules::default());
    let open: Vec<_> = (0..4096).map(|number| limits.open(&rules, None, id(number)).unwrap()).collect();
    assert_eq!(limits.open(&rules, None, id(4096)).unwrap_err().by, Limit::OpenClaims);
    drop(open);
    assert!(limits.open(&rules, None, id(4096)).is_ok());
}

#[test]
fn s_06_callers_without_open_claims_are_not_remembered() {
    let limits = Arc::new(LimitCounters::new());
    let rules = LimitRules { open_claims_max: 2, ..LimitRules::default() };
    for number in 0..=255 {
        let one = limits.open(&rules, caller(number), id(9)).unwrap();
        let two = limits.open(&rules, caller(number), id(10)).unwrap();
        drop(one);
        assert_eq!(limits.open.lock().len(), 1);
        drop(two);
    }
    assert!(limits.open.lock().is_empty());
}

#[test]
fn s_06_a_caller_with_too_much_stored_waits_for_expiry() {
    let limits = LimitCounters::new();
    let rules = LimitRules { stored_bytes_max: Some(1000), ..LimitRules::default() };
    let start = Instant::now();
    let keep_for = 1600 * SECOND;
    limits.stored(&rules, caller(1), 999, keep_for, start);
    assert_eq!(limits.may_store(&rules, caller(1), start), Ok(()));
    limits.stored(&rules, caller(1), 1, keep_for, start + 800 * SECOND);
    let limited = limits.may_store(&rules, caller(1), start + 800 * SECOND).unwrap_err();
    assert_eq!(limited.by, Limit::StoredBytes);
    assert!((800 * SECOND..=900 * SECOND).contains(&limited.retry_after), "{limited:?}");
    assert_eq!(limits.may_store(&rules, caller(1), start + 800 * SECOND + limited.retry_after), Ok(()));
    assert_eq!(limits.may_store(&rules, caller(2), start + 800 * SECOND), Ok(()));
    assert_eq!(limits.may_store(&rules, None, start), Ok(()));
}

#[test]
fn s_06_by_default_only_open_claims_are_counted() {
    let limits = Arc::new(LimitCounters::new());
    let (rules, now) = (LimitRules::default(), Instant::now());
    let mut open = Vec::new();
    for _ in 0..1000 {
        assert_eq!(limits.attempt(&rules, &id(1), now), Ok(()));
        open.push(limits.open(&rules, caller(1), id(11)).unwrap());
        limits.stored(&rules, caller(1), u64::MAX, SECOND, now);
        assert_eq!(limits.may_store(&rules, caller(1), now), Ok(()));
    }
    drop(open);
    assert!(limits.open.lock().is_empty());
    assert!(limits.paces.lock().get(&id(1)).is_none() && limits.pinned.lock().get(&caller(1)).is_none());
}

#[test]
fn s_05_a_limit_counts_callers_separately() {
    let (limits, rules, now) = (LimitCounters::new(), at_a_rate("1/1m"), Instant::now());
    let id = |who: &str| ScopedKey::new(Scope::new("x").principal(who), &Key::new("a").unwrap()).id;
    assert_eq!(limits.attempt(&rules, &id("acme"), now), Ok(()));
    assert_eq!(limits.attempt(&rules, &id("bolt"), now), Ok(()));
    assert!(limits.attempt(&rules, &id("acme"), now).is_err());
}
