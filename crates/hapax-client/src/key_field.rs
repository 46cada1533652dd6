//! The key as a header field: quoted, as RFC 9651 writes strings.

use hapax_core::{Key, KeyError, KeyRules};
use http::{HeaderMap, HeaderName, HeaderValue};

/// The field of keys, unless a client names another.
pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The key in quotes. Every printable text has such a form.
pub(crate) fn quoted(key: &Key) -> HeaderValue {
    let escaped = key.as_str().replace('\\', "\\\\").replace('"', "\\\"");
    let mut value = HeaderValue::try_from(format!("\"{escaped}\"")).expect("a key is printable ASCII");
    // Keys may name a customer's order: they stay out of dumps of headers.
    value.set_sensitive(true);
    value
}

/// The key that the caller has set in the headers itself, in any form that a server may accept.
pub(crate) fn chosen(headers: &HeaderMap, name: &HeaderName) -> Result<Option<Key>, KeyError> {
    let lines: Vec<&[u8]> = headers.get_all(name).iter().map(HeaderValue::as_bytes).collect();
    KeyRules::default().raw().parse(lines)
}
