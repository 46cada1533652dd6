//! Recorded responses: a replay equals the recorded response, and damaged bytes never become a malformed response.

#![no_main]

use bytes::Bytes;
use hapax::http::fuzzing;
use hapax_core::{Class, Format, Recorded};
use http::HeaderMap;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let (meta, payload) = (Bytes::copy_from_slice(input), Bytes::from_static(b"payload"));
    let stored = Recorded::new(Class::Success, Format::HTTP, payload).with_meta(meta);
    replays_the_same(&stored);

    let Some((status, headers, body)) = hapax_fuzz::message(input) else { return };
    let Ok(status) = http::StatusCode::from_bytes(status) else { return };
    if status.is_informational() {
        return; // Not a final response.
    }
    let mut response = http::Response::new(());
    *response.status_mut() = status;
    *response.headers_mut() = headers.clone();
    let recorded = fuzzing::record(&response.into_parts().0, body, Some(&headers));
    let replayed = fuzzing::replay(&HeaderMap::new(), &recorded);
    assert_eq!(replayed.expect("a recorded response can be replayed").0.status(), status);
    replays_the_same(&recorded);
});

/// A replay that is recorded again replays the same.
fn replays_the_same(recorded: &Recorded) {
    let retry = HeaderMap::new();
    let Some((first, trailers)) = fuzzing::replay(&retry, recorded) else { return };
    let (parts, body) = first.into_parts();
    let again = fuzzing::record(&parts, body.clone(), trailers.as_ref());
    let (second, trailers_again) = fuzzing::replay(&retry, &again).expect("a replay can be recorded again");
    assert_eq!((second.status(), second.body()), (parts.status, &body));
    assert_eq!(second.headers(), &parts.headers);
    assert_eq!(trailers_again, trailers);
}
