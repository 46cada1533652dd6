//! Request heads: a key, no key or an error; normalisation of path and query is idempotent; a scope names one operation.

#![no_main]

use hapax::http::{Principal, fuzzing};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((parts, body)) = hapax_fuzz::request(input) else { return };

    let in_header = fuzzing::key(&parts.headers, &body, None);
    let anywhere = fuzzing::key(&parts.headers, &body, Some("/request_id"));
    if let (Ok(Some(key)), Ok(found)) = (&in_header, &anywhere) {
        assert_eq!(found.as_ref(), Some(key), "the header takes precedence over the body");
    }
    if let Err(detail) = in_header {
        assert!(!detail.is_empty());
        assert_eq!(anywhere, Err(detail), "an error in the header stays an error");
    }

    let path = fuzzing::path(parts.uri.path());
    assert_eq!(fuzzing::path(&path), path, "normalisation is idempotent");
    let query = fuzzing::query(parts.uri.query().unwrap_or_default());
    assert_eq!(fuzzing::query(&query), query, "normalisation is idempotent");

    let claim = fuzzing::scope(Principal::jwt_claim("sub"), &parts).expect("anonymous callers share a scope");
    assert!(claim.operation().starts_with(parts.method.as_str()));
    match fuzzing::scope(Principal::default(), &parts) {
        Some(scope) => assert_eq!(claim.operation(), scope.operation()),
        None => {
            assert!(parts.headers.contains_key("cookie"), "only a cookie without a credential is refused")
        }
    }
});
