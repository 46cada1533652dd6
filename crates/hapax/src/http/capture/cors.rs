//! CORS: which of the added fields a script in a browser may read.

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, RETRY_AFTER,
};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::http::canonical::header::first;

/// Lets scripts that may read the response read the marker and Retry-After too.
pub(super) fn expose(marker: &HeaderName, headers: &mut HeaderMap) {
    if first(headers, &ACCESS_CONTROL_ALLOW_ORIGIN).is_none() {
        return;
    }
    let missing: Vec<_> =
        [marker.as_str(), RETRY_AFTER.as_str()].into_iter().filter(|name| !exposes(headers, name)).collect();
    if missing.is_empty() {
        return;
    }
    if let Ok(value) = HeaderValue::try_from(missing.join(", ")) {
        let _full = headers.try_append(ACCESS_CONTROL_EXPOSE_HEADERS, value);
    }
}

/// With credentials, `*` is an ordinary name.
fn exposes(headers: &HeaderMap, name: &str) -> bool {
    let anything = !headers.contains_key(ACCESS_CONTROL_ALLOW_CREDENTIALS);
    let lines = headers.get_all(ACCESS_CONTROL_EXPOSE_HEADERS).iter();
    let mut exposed =
        lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b',')).map(<[u8]>::trim_ascii);
    exposed.any(|exposed| exposed.eq_ignore_ascii_case(name.as_bytes()) || (anything && exposed == b"*"))
}
