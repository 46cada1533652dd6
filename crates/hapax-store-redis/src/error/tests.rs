use hapax_core::StoreErrorKind;
use redis::{ErrorKind, RedisError};

use super::{Effect, ends_connection, judge};

fn said(code: &str) -> RedisError {
    redis::make_extension_error(code.to_owned(), Some("in words".to_owned()))
}

#[test]
fn a_refusal_by_the_server_was_not_applied() {
    for (code, kind) in [
        ("OOM", StoreErrorKind::Full),
        ("WRONGTYPE", StoreErrorKind::Incompatible),
        ("NOREPLICAS", StoreErrorKind::Unavailable),
        ("MISCONF", StoreErrorKind::Unavailable),
        ("BUSY", StoreErrorKind::Unavailable),
    ] {
        assert_eq!(judge(&said(code), Effect::Write), kind, "{code}");
    }
}

#[test]
fn what_may_have_been_applied_is_unknown() {
    let cut = RedisError::from(std::io::Error::from(std::io::ErrorKind::BrokenPipe));
    for error in [&cut, &said("ODD"), &RedisError::from((ErrorKind::Parse, "not an answer"))] {
        assert_eq!(judge(error, Effect::Write), StoreErrorKind::Unknown, "{error}");
        assert_eq!(judge(error, Effect::Read), StoreErrorKind::Unavailable, "{error}");
    }
    assert!(ends_connection(&cut));
    assert!(!ends_connection(&said("OOM")));
}
