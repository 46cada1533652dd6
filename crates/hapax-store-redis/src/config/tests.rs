use std::time::Duration;

use hapax_core::StoreErrorKind;

use super::{Amnesia, Eviction, Options};

#[test]
fn parses_options_from_the_url() {
    let url = "redis://user:secret@host:7000/3?prefix=shop:&timeout_ms=250&replicas=2&evict=accept&amnesia=accept\
               &outcome_bytes_max=1000";
    let options = Options::from_url(url).unwrap();
    assert_eq!(options.address(), "host:7000/3");
    assert_eq!((options.prefix.as_str(), options.timeout), ("shop:", Duration::from_millis(250)));
    assert_eq!((options.replicas, options.outcome_bytes_max), (2, 1000));
    assert_eq!((options.eviction, options.amnesia), (Eviction::Accept, Amnesia::Accept));
    assert!(!format!("{options:?}").contains("secret"));
}

#[test]
fn parses_sizes_with_units() {
    let options = |size: &str| Options::from_url(&format!("redis://host?outcome_bytes_max={size}"));
    for (size, bytes) in [("16MiB", 16 << 20), ("1mb", 1_000_000), ("64KiB", 64 << 10), ("7", 7)] {
        assert_eq!(options(size).unwrap().outcome_bytes_max, bytes, "{size}");
    }
    for (size, expected) in [("16M", "outcome_bytes_max: a size is"), ("4GiB", "is larger than this option")]
    {
        let why = format!("{:?}", options(size).unwrap_err());
        assert!(why.contains(expected), "{why}");
    }
}

#[test]
fn refuses_a_malformed_url_without_repeating_it() {
    for url in [
        "",
        "redis:",
        "redis://",
        "http://secret@host",
        "redis://:secret@host/x",
        "redis://:secret@host#insecure",
        "rediss://:secret@host/#insecure",
        "redis://:secret@host?prefx=a",
        "redis://:secret@host?timeout_ms=soon",
        "redis://:secret@host?timeout_ms=0",
        "redis://:secret@host?replicas=-1",
        "redis://:secret@host?evict=yes",
        "redis://:secret@host?ca=/no/such/file",
        "unix:///secret",
    ] {
        let error = Options::from_url(url).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Invalid, "{url}");
        let shown = format!("{error:?}");
        assert!(!shown.contains("secret"), "{shown}");
    }
}
