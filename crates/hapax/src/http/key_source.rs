//! [`KeySource`]: where a request's key is read from, and whether it is still usable.
//!
//! Headers are read before the body, so an invalid key is refused before the body is requested (T-01). Ambiguous keys
//! are refused; the caller of this module decides what a missing key means and how a refusal is sent.

use std::time::{Duration, SystemTime};

use hapax_core::{JsonPointer, JsonStringError, Key, KeyError, KeyRules, json_text_at};
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use httpdate::HttpDate;

use super::canonical::header::{self, Fields};

/// The header of the IETF draft.
pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// How far a caller's clock may be ahead before its time of first sending counts as in the future (D-02). The clocks of
/// synchronised machines differ by less.
pub(crate) const AHEAD_MAX: Duration = Duration::from_secs(30);

/// The locations of the key. If it is in more than one, all must be the same (K-09).
#[derive(Clone, Debug)]
pub(crate) struct KeySource {
    pub(crate) header: HeaderName,
    pub(crate) aliases: Vec<HeaderName>,
    /// The location of the key in a JSON body.
    pub(crate) pointer: Option<JsonPointer>,
    pub(crate) rules: KeyRules,
    pub(crate) first_sent: Option<FirstSent>,
}

/// The header with the time at which a key was first sent, and the maximum age of that time (D-02).
#[derive(Clone, Debug)]
pub(crate) struct FirstSent {
    pub(crate) header: HeaderName,
    pub(crate) window: Duration,
}

impl FirstSent {
    /// The default window if only the header is configured: the minimum of OASIS.
    pub(crate) const WINDOW: Duration = Duration::from_secs(300);
}

/// Why a request's key is unusable. It contains no part of the key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum KeyFault {
    /// The header's value is not a valid key.
    Header { name: HeaderName, error: KeyError },
    /// The string in the body cannot be determined.
    Body { pointer: JsonPointer, error: JsonStringError },
    /// The string in the body is not a valid key.
    BodyKey { pointer: JsonPointer, error: KeyError },
    /// The key differs from the one found before.
    Differs { place: String },
}

/// Why a request is not repeatable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FirstSentFault {
    /// Missing, repeated or not a date.
    Invalid { why: &'static str },
    /// Too long ago, or in the future.
    OutsideWindow,
}

impl Default for KeySource {
    fn default() -> Self {
        Self {
            header: IDEMPOTENCY_KEY,
            aliases: Vec::new(),
            pointer: None,
            rules: KeyRules::new(),
            first_sent: None,
        }
    }
}

impl KeySource {
    /// The key in the header or its aliases; `None` if all of them are missing.
    ///
    /// Only the header section is read: a trailer is never a key (K-09).
    pub(crate) fn in_headers(&self, fields: Fields<'_>) -> Result<Option<Key>, KeyFault> {
        let mut found = None;
        for name in std::iter::once(&self.header).chain(&self.aliases) {
            if !fields.may_have(name) {
                continue;
            }
            let lines = fields.lines(name).map(HeaderValue::as_bytes);
            let key =
                self.rules.parse(lines).map_err(|error| KeyFault::Header { name: name.clone(), error })?;
            found = same_key(found, key, || format!("`{name}`"))?;
        }
        Ok(found)
    }

    /// Whether a field with this name may hold the key.
    pub(crate) fn reads(&self, field: &[u8]) -> bool {
        let is_it = |name: &HeaderName| name.as_str().as_bytes().eq_ignore_ascii_case(field);
        is_it(&self.header) || self.aliases.iter().any(is_it)
    }

    /// Whether the body may hold the key. Only JSON is parsed.
    pub(crate) fn may_be_in_body(&self, fields: Fields<'_>) -> bool {
        self.pointer.is_some() && is_json(fields.map)
    }

    /// The key `found` in the headers or the one in the body; if both are present they must be equal.
    ///
    /// A JSON body from which the key cannot be read is refused even if a header has one: the two might differ.
    pub(crate) fn in_body(
        &self,
        found: Option<Key>,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Result<Option<Key>, KeyFault> {
        let Some(pointer) = self.pointer.as_ref().filter(|_| !body.is_empty() && is_json(headers)) else {
            return Ok(found);
        };
        let content = json_text_at(body, pointer)
            .map_err(|error| KeyFault::Body { pointer: pointer.clone(), error })?;
        let key = content
            .map(|content| Key::new(content).and_then(|key| self.rules.admit(key)))
            .transpose()
            .map_err(|error| KeyFault::BodyKey { pointer: pointer.clone(), error })?;
        same_key(found, key, || format!("`{pointer}` in the body"))
    }

    /// Checks that the request was first sent within the window before `now`, by its header (D-02).
    pub(crate) fn check_first_sent(
        &self,
        headers: &HeaderMap,
        now: SystemTime,
    ) -> Result<(), FirstSentFault> {
        let Some(FirstSent { header, window }) = &self.first_sent else {
            return Ok(());
        };
        let inside = match now.duration_since(first_sent(headers, header)?) {
            Ok(age) => age <= *window,
            Err(ahead) => ahead.duration() <= AHEAD_MAX,
        };
        if inside { Ok(()) } else { Err(FirstSentFault::OutsideWindow) }
    }
}

/// Either key, if they do not differ; `place` is where the second was found.
fn same_key(
    found: Option<Key>,
    key: Option<Key>,
    place: impl Fn() -> String,
) -> Result<Option<Key>, KeyFault> {
    match (found, key) {
        (Some(found), Some(key)) if found != key => Err(KeyFault::Differs { place: place() }),
        (found, key) => Ok(found.or(key)),
    }
}

/// Whether any Content-Type line is JSON. Where several lines differ, the handler may use any of them.
fn is_json(headers: &HeaderMap) -> bool {
    headers.get_all(CONTENT_TYPE).iter().any(|line| {
        let essence = header::essence(line.as_bytes());
        header::is_json(&essence) || *essence == *b"text/json"
    })
}

fn first_sent(headers: &HeaderMap, header: &HeaderName) -> Result<SystemTime, FirstSentFault> {
    let invalid = |why| FirstSentFault::Invalid { why };
    let mut lines = headers.get_all(header).iter();
    let Some(line) = lines.next() else {
        return Err(invalid("the header with the time at which the request was first sent is missing"));
    };
    if lines.next().is_some() {
        return Err(invalid("the header with the time at which the request was first sent is repeated"));
    }
    let not_a_date =
        "the time at which the request was first sent is not a date such as `Sun, 06 Nov 1994 08:49:37 GMT`";
    let text = line.to_str().map_err(|_| invalid(not_a_date))?;
    let date: HttpDate = text.parse().map_err(|_| invalid(not_a_date))?;
    // The crate also parses the two obsolete formats, and one of them has two-digit years.
    if date.to_string() == text { Ok(date.into()) } else { Err(invalid(not_a_date)) }
}

impl KeyFault {
    /// The description for the sender of the request.
    pub(crate) fn detail(&self) -> String {
        match self {
            Self::Header { name, error } => format!("`{name}`: {error}"),
            Self::Body { pointer, error } => format!("`{pointer}` in the body: {error}"),
            Self::BodyKey { pointer, error } => format!("`{pointer}` in the body: {error}"),
            Self::Differs { place } => {
                format!(
                    "the key at {place} differs from the one found before; send one key, or the same in all places"
                )
            }
        }
    }
}

impl FirstSentFault {
    /// The description for the sender of the request.
    pub(crate) fn detail(&self) -> &'static str {
        match self {
            Self::Invalid { why } => why,
            Self::OutsideWindow => {
                "the request was first sent too long ago, or in the future; find out whether it was executed"
            }
        }
    }
}

#[cfg(test)]
mod tests;
