use redis::Value;

use super::{Primary, SLOTS, SlotSet, number_in, parse, redirected, slot_of};
use crate::address::Host;

fn queried() -> Host {
    ("queried".to_owned(), 7000)
}

#[test]
fn matches_cluster_keyslot() {
    // Values from `CLUSTER KEYSLOT`.
    for (key, slot) in [
        ("123456789", 12739),
        ("", 0),
        ("foo", 12182),
        ("{foo}bar", 12182),
        ("bar{foo}{zap}", 12182),
        ("foo{}{bar}", 8363),
        ("foo{{bar}}zap", 4015),
    ] {
        assert_eq!(slot_of(key.as_bytes()), slot, "{key}");
    }
}

#[test]
fn every_slot_has_a_matching_number() {
    for slot in [0, 1, 5461, 12182, SLOTS - 1] {
        assert_eq!(slot_of(format!("hapax:generation{{{}}}", number_in(slot)).as_bytes()), slot);
    }
}

#[test]
fn contains_the_keys_of_its_slots() {
    let slots = SlotSet::Ranges(vec![(100, 200), (12182, 12182)]);
    assert!(slots.has("foo") && !slots.has("bar"));
    assert_eq!((slots.lowest(), slots.is_empty()), (Some(100), false));
    assert_eq!((SlotSet::none().lowest(), SlotSet::none().is_empty()), (None, true));
    assert!(SlotSet::All.has("bar") && !SlotSet::All.is_member());
}

fn range(first: i64, last: i64, name: Value, port: i64) -> Value {
    let primary = Value::Array(vec![name, Value::Int(port), Value::BulkString(b"id".to_vec())]);
    let replica = Value::Array(vec![Value::BulkString(b"replica".to_vec()), Value::Int(1)]);
    Value::Array(vec![Value::Int(first), Value::Int(last), primary, replica])
}

#[test]
fn ranges_are_grouped_by_primary() {
    let name = |name: &str| Value::BulkString(name.as_bytes().to_vec());
    let answer = Value::Array(vec![
        range(9, 20, name("a"), 1),
        range(0, 8, name("b"), 1),
        range(30, 40, Value::Nil, 2),
        range(21, 22, name(""), 2),
        range(5, 6, name("a"), 1),
    ]);
    let primary =
        |name: &str, port, ranges: &[_]| Primary { host: (name.to_owned(), port), ranges: ranges.to_vec() };
    let expected = vec![
        primary("a", 1, &[(5, 6), (9, 20)]),
        primary("b", 1, &[(0, 8)]),
        primary("queried", 2, &[(21, 22), (30, 40)]),
    ];
    assert_eq!(parse(&answer, &queried()), Some(expected));
    for wrong in [
        Value::Nil,
        Value::Array(vec![Value::Int(1)]),
        Value::Array(vec![range(0, 16384, name("a"), 1)]),
        Value::Array(vec![range(-1, 3, name("a"), 1)]),
        Value::Array(vec![range(0, 3, name("a"), 70_000)]),
        Value::Array(vec![range(0, 3, Value::Int(1), 1)]),
    ] {
        assert_eq!(parse(&wrong, &queried()), None, "{wrong:?}");
    }
}

#[test]
fn parses_redirections() {
    for (to, expected) in [
        ("10.0.0.1:6379", Some(("10.0.0.1", 6379))),
        ("::1:6379", Some(("::1", 6379))),
        (":6379", Some(("queried", 6379))),
        ("?:6379", Some(("queried", 6379))),
        ("a", None),
        ("a:b", None),
        ("a:70000", None),
    ] {
        let expected = expected.map(|(name, port)| (name.to_owned(), port));
        assert_eq!(redirected(to, &queried()), expected, "{to}");
    }
}
