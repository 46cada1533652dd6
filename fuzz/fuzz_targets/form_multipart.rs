//! Form bodies: every body has a fingerprint, and an additional pair changes it.

#![no_main]

use bytes::Bytes;
use hapax::http::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((parts, body)) = hapax_fuzz::request(input) else { return };
    let print = |body: &Bytes| fuzzing::fingerprint(&parts.method, "/", "", &parts.headers, body);
    assert!(print(&body).is_some(), "without decoding, no body is refused");
    assert_eq!(print(&body), print(&body.clone()));

    let content_type = parts.headers.get("content-type").map(|value| value.as_bytes());
    if content_type == Some(b"application/x-www-form-urlencoded") && !body.is_empty() {
        let more = [&body[..], b"&another=pair"].concat();
        assert_ne!(print(&body), print(&more.into()), "an additional pair is another request");
    }
});
