//! [`KeySource`]: where a request's key comes from, and whether it may still be used.
//!
//! Headers first, then the body: a bad key is refused before a body is asked for (T-01). It refuses and never
//! guesses; what a missing key means, and how a refusal is answered, is for others to say.

use std::time::{Duration, SystemTime};

use hapax_core::{JsonPointer, JsonStringError, Key, KeyError, KeyRules, json_text_at};
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use httpdate::HttpDate;

use super::canonical::header::{self, Fields};

/// The header of the IETF draft.
pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// How far a caller's clock may be ahead of ours before what it says it sent counts as from the future (D-02).
/// Machines that keep time at all are within it.
pub(crate) const AHEAD_MAX: Duration = Duration::from_secs(30);

/// Where a key may stand. Wherever it stands more than once, it must be the same one (K-09).
#[derive(Clone, Debug)]
pub(crate) struct KeySource {
    pub(crate) header: HeaderName,
    pub(crate) aliases: Vec<HeaderName>,
    /// Where the key is in a JSON body.
    pub(crate) pointer: Option<JsonPointer>,
    pub(crate) rules: KeyRules,
    pub(crate) first_sent: Option<FirstSent>,
}

/// When a key was used first, as its caller says in a header, and how long ago that may be (D-02).
#[derive(Clone, Debug)]
pub(crate) struct FirstSent {
    pub(crate) header: HeaderName,
    pub(crate) window: Duration,
}

impl FirstSent {
    /// The window where only the header is named: the least that OASIS allows.
    pub(crate) const WINDOW: Duration = Duration::from_secs(300);
}

/// Why a request's key is unusable. It shows nothing of the key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum KeyFault {
    /// What is in the header is no key that the rules take.
    Header { name: HeaderName, error: KeyError },
    /// There is no telling which string is in the body.
    Body { pointer: JsonPointer, error: JsonStringError },
    /// The string in the body is no key that the rules take.
    BodyKey { pointer: JsonPointer, error: KeyError },
    /// Another key than the one found before.
    Differs { place: String },
}

/// Why a request is not repeatable now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FirstSentFault {
    /// Missing, repeated or no date.
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
    /// The key in the header or its aliases; `None` when all of them are missing.
    ///
    /// These are the headers before the body: what comes as a trailer is no key (K-09).
    pub(crate) fn in_headers(&self, fields: Fields<'_>) -> Result<Option<Key>, KeyFault> {
        let mut found = None;
        for name in std::iter::once(&self.header).chain(&self.aliases) {
            if !fields.may_have(name) {
                continue;
            }
            let lines = fields.lines(name).map(HeaderValue::as_bytes);
            let key =
                self.rules.parse(lines).map_err(|error| KeyFault::Header { name: name.clone(), error })?;
            found = agree(found, key, || format!("`{name}`"))?;
        }
        Ok(found)
    }

    /// Whether this is the name of a field that the key may stand in.
    pub(crate) fn reads(&self, field: &[u8]) -> bool {
        let is_it = |name: &HeaderName| name.as_str().as_bytes().eq_ignore_ascii_case(field);
        is_it(&self.header) || self.aliases.iter().any(is_it)
    }

    /// Whether the key may stand in the body. Only JSON is looked into.
    pub(crate) fn may_be_in_body(&self, fields: Fields<'_>) -> bool {
        self.pointer.is_some() && is_json(fields.map)
    }

    /// The key that was `found` in the headers or the one in the body, which must be the same when both are there.
    ///
    /// A JSON body in which the key cannot be read is refused even when a header has one: the two might differ.
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
        agree(found, key, || format!("`{pointer}` in the body"))
    }

    /// Whether the request says that it was sent first within the window before `now` (D-02).
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

/// The one key that both are; `place` is where the second was found.
fn agree(found: Option<Key>, key: Option<Key>, place: impl Fn() -> String) -> Result<Option<Key>, KeyFault> {
    match (found, key) {
        (Some(found), Some(key)) if found != key => Err(KeyFault::Differs { place: place() }),
        (found, key) => Ok(found.or(key)),
    }
}

/// Whether any line says JSON. Where several lines disagree, the handler may believe any of them.
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
        return Err(invalid("the header that says when the request was sent first is missing"));
    };
    if lines.next().is_some() {
        return Err(invalid("the header that says when the request was sent first is there more than once"));
    }
    let not_a_date = "the time of first sending is no date such as `Sun, 06 Nov 1994 08:49:37 GMT`";
    let text = line.to_str().map_err(|_| invalid(not_a_date))?;
    let date: HttpDate = text.parse().map_err(|_| invalid(not_a_date))?;
    // The crate also reads the two spellings of old, and one of them has years of two digits.
    if date.to_string() == text { Ok(date.into()) } else { Err(invalid(not_a_date)) }
}

impl KeyFault {
    /// What is wrong, for whoever sent the request.
    pub(crate) fn detail(&self) -> String {
        match self {
            Self::Header { name, error } => format!("`{name}`: {error}"),
            Self::Body { pointer, error } => format!("`{pointer}` in the body: {error}"),
            Self::BodyKey { pointer, error } => format!("`{pointer}` in the body: {error}"),
            Self::Differs { place } => {
                format!(
                    "the key at {place} is not the one found before; send one key, or the same everywhere"
                )
            }
        }
    }
}

impl FirstSentFault {
    /// What is wrong, for whoever sent the request.
    pub(crate) fn detail(&self) -> &'static str {
        match self {
            Self::Invalid { why } => why,
            Self::OutsideWindow => {
                "the request was sent first too long ago, or in the future; find out what became of it"
            }
        }
    }
}

#[cfg(test)]
mod tests;
