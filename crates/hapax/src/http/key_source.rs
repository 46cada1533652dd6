//! [`KeySource`]: where a request's key is read from, and whether it is still usable.
//!
//! The head is read before the body, so an invalid key is refused before the body is requested (T-01). Ambiguous keys
//! are refused; the caller of this module decides what a missing key means and how a refusal is sent.

use std::time::{Duration, SystemTime};

use hapax_core::{JsonStringError, Key, KeyError, KeyFields, KeyFieldsError, KeyRules, json_text_at};
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use httpdate::HttpDate;

use super::canonical::form;
use super::canonical::header::{self, Fields};
use super::key_place::KeyPlace;

/// The header of the IETF draft.
pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// How far a caller's clock may be ahead before its time of first sending counts as in the future (D-02). The clocks of
/// synchronised machines differ by less.
pub(crate) const AHEAD_MAX: Duration = Duration::from_secs(30);

/// The places of the key. If it is in more than one, all must be the same (K-09).
#[derive(Clone, Debug)]
pub(crate) struct KeySource {
    pub(crate) places: Vec<KeyPlace>,
    pub(crate) rules: KeyRules,
    pub(crate) first_sent: Option<FirstSent>,
    pub(crate) derived: Option<DerivedKeys>,
}

/// Keys for requests that have none: derived from a JSON body (K-11).
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DerivedKeys {
    pub(crate) fields: KeyFields,
    /// How long an equal request counts as a retry; without it, as long as other records are kept.
    pub(crate) window: Option<Duration>,
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
pub(crate) struct KeyFault {
    pub(crate) place: KeyPlace,
    pub(crate) why: KeyFaultReason,
}

/// What is wrong at a place of the key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum KeyFaultReason {
    /// The value is not a valid key.
    Key(KeyError),
    /// The value in the JSON body cannot be determined.
    Json(JsonStringError),
    /// The parameter or the field occurs more than once.
    Repeated,
    /// The query or the form is not a list of pairs that can be decoded.
    NotPairs,
    /// The key differs from the one found before.
    Differs,
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
            places: vec![KeyPlace::Header(IDEMPOTENCY_KEY)],
            rules: KeyRules::new(),
            first_sent: None,
            derived: None,
        }
    }
}

impl KeySource {
    /// The first header that may hold the key.
    pub(crate) fn header(&self) -> Option<&HeaderName> {
        self.headers().next()
    }

    /// The headers that may hold the key.
    pub(crate) fn headers(&self) -> impl Iterator<Item = &HeaderName> {
        self.places.iter().filter_map(|place| match place {
            KeyPlace::Header(name) => Some(name),
            _ => None,
        })
    }

    /// Reads the key from this header instead of the first one.
    pub(crate) fn set_header(&mut self, name: HeaderName) {
        let place = self.places.iter_mut().find(|place| matches!(place, KeyPlace::Header(_)));
        match place {
            Some(place) => *place = KeyPlace::Header(name),
            None => self.places.insert(0, KeyPlace::Header(name)),
        }
    }

    /// The key in a header or in the query; `None` if there is none.
    ///
    /// Of the fields, only the header section is read: a trailer is never a key (K-09).
    pub(crate) fn in_head(&self, fields: Fields<'_>, query: Option<&str>) -> Result<Option<Key>, KeyFault> {
        let mut found = None;
        for place in &self.places {
            let key = match place {
                KeyPlace::Header(name) if fields.may_have(name) => {
                    let lines = fields.lines(name).map(HeaderValue::as_bytes);
                    self.rules.parse(lines).map_err(KeyFaultReason::Key)
                }
                KeyPlace::Query(name) => self.in_pairs(query.unwrap_or_default().as_bytes(), name),
                KeyPlace::Header(_) | KeyPlace::Json(_) | KeyPlace::Form(_) => continue,
            };
            found = agreed(found, key, place)?;
        }
        Ok(found)
    }

    /// Whether a field with this name may hold the key.
    pub(crate) fn reads(&self, field: &[u8]) -> bool {
        self.headers().any(|name| name.as_str().as_bytes().eq_ignore_ascii_case(field))
    }

    /// Whether the body may hold the key, or what it is derived from.
    pub(crate) fn may_be_in_body(&self, fields: Fields<'_>) -> bool {
        let in_body = self.places.iter().any(|place| match place {
            KeyPlace::Json(_) => is_json(fields.map),
            KeyPlace::Form(_) => is_form(fields.map),
            KeyPlace::Header(_) | KeyPlace::Query(_) => false,
        });
        in_body || (self.derived.is_some() && is_json(fields.map))
    }

    /// The key `found` in the head or the one in the body; if both are present they must be equal.
    ///
    /// A body from which the key cannot be read is refused even if the head has one: the two might differ.
    pub(crate) fn in_body(
        &self,
        mut found: Option<Key>,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Result<Option<Key>, KeyFault> {
        for place in self.places.iter().filter(|_| !body.is_empty()) {
            let key = match place {
                KeyPlace::Json(pointer) if is_json(headers) => {
                    let text = json_text_at(body, pointer).map_err(KeyFaultReason::Json);
                    text.and_then(|text| text.map(|text| self.key(&text)).transpose())
                }
                KeyPlace::Form(name) if is_form(headers) => self.in_pairs(body, name),
                _ => continue,
            };
            found = agreed(found, key, place)?;
        }
        Ok(found)
    }

    /// The key that is derived from the body of a request without one; `None` if nothing is derived, or the body lacks a
    /// field (K-11).
    pub(crate) fn derive(&self, headers: &HeaderMap, body: &[u8]) -> Result<Option<Key>, KeyFieldsError> {
        let Some(derived) = self.derived.as_ref().filter(|_| !body.is_empty() && is_json(headers)) else {
            return Ok(None);
        };
        match derived.fields.key_of_json(body) {
            Ok(key) => Ok(Some(key)),
            Err(KeyFieldsError::Missing(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn in_pairs(&self, text: &[u8], name: &str) -> Result<Option<Key>, KeyFaultReason> {
        let pairs = form::pairs(text).ok_or(KeyFaultReason::NotPairs)?;
        let mut values =
            pairs.iter().filter(|(found, _)| **found == *name.as_bytes()).map(|(_, value)| value);
        let Some(value) = values.next() else { return Ok(None) };
        if values.next().is_some() {
            return Err(KeyFaultReason::Repeated);
        }
        // What is not UTF-8 is not printable ASCII either, and is refused as such.
        self.key(&String::from_utf8_lossy(value)).map(Some)
    }

    fn key(&self, content: &str) -> Result<Key, KeyFaultReason> {
        Key::new(content).and_then(|key| self.rules.admit(key)).map_err(KeyFaultReason::Key)
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

/// The key found so far or the one at `place`, if they do not differ.
fn agreed(
    found: Option<Key>,
    key: Result<Option<Key>, KeyFaultReason>,
    place: &KeyPlace,
) -> Result<Option<Key>, KeyFault> {
    let fault = |why| KeyFault { place: place.clone(), why };
    match (found, key.map_err(fault)?) {
        (Some(found), Some(key)) if found != key => Err(fault(KeyFaultReason::Differs)),
        (found, key) => Ok(found.or(key)),
    }
}

/// Whether any Content-Type line is JSON. Where several lines differ, the handler may use any of them.
fn is_json(headers: &HeaderMap) -> bool {
    any_essence(headers, |essence| header::is_json(essence) || essence == b"text/json")
}

/// Whether any Content-Type line is a form.
fn is_form(headers: &HeaderMap) -> bool {
    any_essence(headers, |essence| essence == b"application/x-www-form-urlencoded")
}

fn any_essence(headers: &HeaderMap, is_it: impl Fn(&[u8]) -> bool) -> bool {
    headers.get_all(CONTENT_TYPE).iter().any(|line| is_it(&header::essence(line.as_bytes())))
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
        let place = self.place.described();
        match &self.why {
            KeyFaultReason::Key(error) => format!("{place}: {error}"),
            KeyFaultReason::Json(error) => format!("{place}: {error}"),
            KeyFaultReason::Repeated => format!("{place} occurs more than once; send it once"),
            KeyFaultReason::NotPairs => {
                format!("{place} cannot be read: too many pairs, or an invalid percent-encoding")
            }
            KeyFaultReason::Differs => format!(
                "the key at {place} differs from the one found before; send one key, or the same in all places"
            ),
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
