use hapax_core::StoreErrorKind;
use redis::{ErrorKind, RedisError};

use super::{Effect, classify_error, ends_connection};

fn said(code: &str) -> RedisError {
    redis::make_extension_error(code.to_owned(), Some("in words".to_owned()))
}

#[test]
fn errors_before_execution_are_not_applied() {
    for (code, kind) in [
        ("OOM", StoreErrorKind::Full),
        ("WRONGTYPE", StoreErrorKind::Incompatible),
        ("NOREPLICAS", StoreErrorKind::Unavailable),
        ("MISCONF", StoreErrorKind::Unavailable),
        ("BUSY", StoreErrorKind::Unavailable),
    ] {
        assert_eq!(classify_error(&said(code), Effect::Write), kind, "{code}");
    }
}

#[test]
fn errors_after_sending_a_write_are_unknown() {
    let cut = RedisError::from(std::io::Error::from(std::io::ErrorKind::BrokenPipe));
    for error in [&cut, &said("ODD"), &RedisError::from((ErrorKind::Parse, "not an answer"))] {
        assert_eq!(classify_error(error, Effect::Write), StoreErrorKind::Unknown, "{error}");
        assert_eq!(classify_error(error, Effect::Read), StoreErrorKind::Unavailable, "{error}");
    }
    assert!(ends_connection(&cut));
    assert!(!ends_connection(&said("OOM")));
}
