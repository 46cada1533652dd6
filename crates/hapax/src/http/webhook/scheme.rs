//! [`Scheme`]: the description of a sender, parsed and checked. It is independent of requests.
//!
//! A description is refused if one signature would be valid for two events: an id or a time that is not signed, and
//! signed parts whose boundaries are ambiguous.

use std::time::Duration;

use hapax_core::{JsonPointer, Select};
use http::{HeaderName, Uri};

use super::{WebhookError, preset};
use crate::http::settings::{
    WebhookAlgorithm, WebhookEncoding, WebhookScheme, WebhookSecretEncoding, WebhookTimeUnit,
};

/// The default maximum difference between a signature's time and the local clock, as in Stripe's and Standard Webhooks'
/// own libraries.
const TOLERANCE: Duration = Duration::from_secs(5 * 60);

/// How a sender signs, and what identifies an event.
#[derive(Debug)]
pub(super) struct Scheme {
    /// `None` for a sender that does not sign.
    pub(super) signature: Option<Signature>,
    /// The first that is present counts.
    pub(super) key: Vec<EventKeySource>,
    /// Which values of a JSON body are part of the content.
    pub(super) content: Select,
    /// Headers that are part of the content although they are not signed.
    pub(super) content_headers: Vec<HeaderName>,
}

/// Where signatures are, and what they sign.
#[derive(Debug)]
pub(super) struct Signature {
    pub(super) header: HeaderName,
    pub(super) algorithm: WebhookAlgorithm,
    pub(super) encoding: WebhookEncoding,
    pub(super) secret_encoding: WebhookSecretEncoding,
    pub(super) separator: Option<String>,
    pub(super) prefix: String,
    pub(super) signed: Vec<SignedPart>,
    pub(super) time: Option<SigningTime>,
    /// The part before the path in the URL that the sender calls.
    pub(super) url: Option<String>,
}

/// One part of the signed content.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum SignedPart {
    Text(String),
    Body,
    /// The fields of a form, concatenated as Twilio does.
    Form,
    Url,
    Time,
    Header(HeaderName),
}

/// When a delivery was signed.
#[derive(Debug)]
pub(super) struct SigningTime {
    pub(super) place: TimeSource,
    pub(super) unit: WebhookTimeUnit,
    pub(super) tolerance: Duration,
}

#[derive(Debug)]
pub(super) enum TimeSource {
    Header(HeaderName),
    /// In the signature's header, after this prefix.
    Item(String),
    Json(JsonPointer),
}

/// What identifies an event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum EventKeySource {
    /// A digest of the signed content, without the time.
    Content,
    Header(HeaderName),
    Json(JsonPointer),
    CloudEvent,
}

impl Scheme {
    /// A sender that does not sign, with the ids of its events in a header.
    pub(super) fn unsigned(id_header: HeaderName) -> Self {
        Self {
            signature: None,
            key: vec![EventKeySource::Header(id_header)],
            content: Select::default(),
            content_headers: Vec::new(),
        }
    }

    pub(super) fn of(description: &WebhookScheme) -> Result<Self, WebhookError> {
        let description =
            with_preset(description, description.preset.map(preset::scheme).unwrap_or_default());
        let key = description.key.as_deref().unwrap_or_default().iter().map(|text| key_place(text));
        let key: Vec<EventKeySource> = key.collect::<Result<_, _>>()?;
        let key = if key.is_empty() { vec![EventKeySource::Content] } else { key };
        let signature = match (key == [EventKeySource::CloudEvent], &description.header) {
            (true, None) => None,
            (true, Some(_)) => return Err(wrong("header", "CloudEvents are not signed; leave this out")),
            (false, _) => Some(Signature::of(&description)?),
        };
        let scheme = Self {
            signature,
            key,
            content: Select::default()
                .exclude(all(&description.content_exclude, |text| pointer("content_exclude", text))?),
            content_headers: all(&description.content_headers, |text| header("content_headers", text))?,
        };
        scheme.check()?;
        Ok(scheme)
    }

    /// Checks that the key of an event is signed.
    fn check(&self) -> Result<(), WebhookError> {
        let Some(signature) = &self.signature else { return Ok(()) };
        for place in &self.key {
            match place {
                EventKeySource::Content => {}
                EventKeySource::Header(name)
                    if signature.signed.contains(&SignedPart::Header(name.clone())) => {}
                EventKeySource::Json(_) if signature.signed.contains(&SignedPart::Body) => {}
                EventKeySource::Header(_) | EventKeySource::Json(_) | EventKeySource::CloudEvent => {
                    let why = "this is not signed: with another id the same delivery would run again; use `content`";
                    return Err(wrong("key", why));
                }
            }
        }
        Ok(())
    }
}

impl Signature {
    fn of(description: &WebhookScheme) -> Result<Self, WebhookError> {
        let Some(name) = &description.header else {
            return Err(wrong("header", "it is missing; name the header that holds the signature"));
        };
        let signed = template(description.signed.as_deref().unwrap_or("{body}"))?;
        let signature = Self {
            header: header("header", name)?,
            algorithm: description.algorithm.unwrap_or_default(),
            encoding: description.encoding.unwrap_or_default(),
            secret_encoding: description.secret_encoding.unwrap_or_default(),
            separator: description.separator.clone().filter(|separator| !separator.is_empty()),
            prefix: description.prefix.clone().unwrap_or_default(),
            time: time(description)?,
            url: description.url.as_deref().map(base).transpose()?,
            signed,
        };
        signature.check()?;
        Ok(signature)
    }

    fn check(&self) -> Result<(), WebhookError> {
        let count = |wanted: &[SignedPart]| self.signed.iter().filter(|part| wanted.contains(part)).count();
        if count(&[SignedPart::Body, SignedPart::Form]) != 1 {
            return Err(wrong("signed", "it needs either {body} or {form}, once"));
        }
        if count(&[SignedPart::Url]) > 1 || count(&[SignedPart::Time]) > 1 {
            return Err(wrong("signed", "name {url} and {time} once"));
        }
        match (self.url.is_some(), count(&[SignedPart::Url]) == 1) {
            (false, true) => {
                return Err(wrong(
                    "url",
                    "it is missing; write the part before the path in the URL that the sender calls",
                ));
            }
            (true, false) => {
                return Err(wrong("url", "it has no effect without {url} in `signed`; leave it out"));
            }
            _ => {}
        }
        match (&self.time, count(&[SignedPart::Time]) == 1) {
            (None, true) => return Err(wrong("time", "it is missing; name the location of {time}")),
            (Some(SigningTime { place: TimeSource::Header(_) | TimeSource::Item(_), .. }), false) => {
                return Err(wrong("time", "it is not signed, so it is not authenticated; leave it out"));
            }
            (Some(SigningTime { place: TimeSource::Json(_), .. }), _) if count(&[SignedPart::Body]) == 0 => {
                return Err(wrong("time", "the body is not JSON; leave it out"));
            }
            _ => {}
        }
        self.check_borders()
    }

    /// Whether the end of each part is unambiguous in the signed content.
    fn check_borders(&self) -> Result<(), WebhookError> {
        let is_clear = self.signed.windows(2).all(|two| match two {
            // The content is both together, independent of their boundary.
            [SignedPart::Url, SignedPart::Form] => true,
            [SignedPart::Text(text), SignedPart::Time] => !text.ends_with(|last: char| last.is_ascii_digit()),
            [SignedPart::Time, SignedPart::Text(text)] => {
                !text.starts_with(|first: char| first.is_ascii_digit())
            }
            [SignedPart::Text(_), _] | [_, SignedPart::Text(_)] => true,
            _ => false,
        });
        if is_clear {
            return Ok(());
        }
        Err(wrong(
            "signed",
            "its parts are ambiguous; separate them by a text, without a digit next to {time}",
        ))
    }

    /// The text that ends the value of the header `at` this index: an id that contains it could be forged from another
    /// delivery.
    pub(super) fn border(&self, at: usize) -> Option<&str> {
        let is_open =
            |part: &SignedPart| matches!(part, SignedPart::Body | SignedPart::Form | SignedPart::Url);
        let is_before = self.signed[at..].iter().any(is_open);
        let beside = if is_before { at.checked_add(1) } else { at.checked_sub(1) };
        match beside.and_then(|beside| self.signed.get(beside)) {
            Some(SignedPart::Text(text)) => Some(text),
            _ => None,
        }
    }
}

/// The options that are set, and the preset's for the rest.
fn with_preset(description: &WebhookScheme, preset: WebhookScheme) -> WebhookScheme {
    let description = description.clone();
    WebhookScheme {
        preset: description.preset,
        header: description.header.or(preset.header),
        algorithm: description.algorithm.or(preset.algorithm),
        encoding: description.encoding.or(preset.encoding),
        separator: description.separator.or(preset.separator),
        prefix: description.prefix.or(preset.prefix),
        signed: description.signed.or(preset.signed),
        time: description.time.or(preset.time),
        time_unit: description.time_unit.or(preset.time_unit),
        tolerance: description.tolerance.or(preset.tolerance),
        key: description.key.or(preset.key),
        content_exclude: description.content_exclude.or(preset.content_exclude),
        content_headers: description.content_headers.or(preset.content_headers),
        secret_encoding: description.secret_encoding.or(preset.secret_encoding),
        url: description.url.or(preset.url),
    }
}

fn time(description: &WebhookScheme) -> Result<Option<SigningTime>, WebhookError> {
    let Some(text) = &description.time else {
        return match (description.time_unit, description.tolerance) {
            (None, None) => Ok(None),
            _ => Err(wrong("time", "it is missing; without it `time_unit` and `tolerance` have no effect")),
        };
    };
    let place = match text.split_once(':') {
        Some(("header", name)) => TimeSource::Header(header("time", name)?),
        Some(("item", prefix)) if !prefix.is_empty() => TimeSource::Item(prefix.to_owned()),
        Some(("json", text)) => TimeSource::Json(pointer("time", text)?),
        _ => return Err(wrong("time", "write header:NAME, item:PREFIX or json:/POINTER")),
    };
    let tolerance = description.tolerance.map_or(TOLERANCE, |span| span.0);
    Ok(Some(SigningTime { place, unit: description.time_unit.unwrap_or_default(), tolerance }))
}

fn key_place(text: &str) -> Result<EventKeySource, WebhookError> {
    match text.split_once(':') {
        None if text == "content" => Ok(EventKeySource::Content),
        None if text == "cloudevent" => Ok(EventKeySource::CloudEvent),
        Some(("header", name)) => header("key", name).map(EventKeySource::Header),
        Some(("json", text)) => pointer("key", text).map(EventKeySource::Json),
        _ => Err(wrong("key", "write json:/POINTER, header:NAME or content")),
    }
}

fn template(text: &str) -> Result<Vec<SignedPart>, WebhookError> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else {
            return Err(wrong("signed", "a brace is not closed"));
        };
        if !before.is_empty() {
            parts.push(SignedPart::Text(before.to_owned()));
        }
        parts.push(match name.split_once(':') {
            None if name == "body" => SignedPart::Body,
            None if name == "form" => SignedPart::Form,
            None if name == "url" => SignedPart::Url,
            None if name == "time" => SignedPart::Time,
            Some(("header", name)) => SignedPart::Header(header("signed", name)?),
            _ => return Err(wrong("signed", "write body, form, url, time or header:NAME in braces")),
        });
        rest = after;
    }
    if !rest.is_empty() {
        parts.push(SignedPart::Text(rest.to_owned()));
    }
    Ok(parts)
}

/// The part before the path, without a trailing slash.
fn base(text: &str) -> Result<String, WebhookError> {
    let is_base = text.parse::<Uri>().is_ok_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some() && uri.query().is_none()
    });
    if is_base && !text.contains('#') {
        return Ok(text.trim_end_matches('/').to_owned());
    }
    Err(wrong("url", "write the part before the path, as in \"https://hooks.example.com\""))
}

fn header(option: &'static str, name: &str) -> Result<HeaderName, WebhookError> {
    name.parse().map_err(|_| wrong(option, "this is not a header name; write letters, digits and `-`"))
}

fn pointer(option: &'static str, text: &str) -> Result<JsonPointer, WebhookError> {
    text.parse().map_err(|error| WebhookError::Scheme { option, why: format!("{error}") })
}

fn all<T>(
    texts: &Option<Vec<String>>,
    read: impl Fn(&str) -> Result<T, WebhookError>,
) -> Result<Vec<T>, WebhookError> {
    texts.iter().flatten().map(|text| read(text)).collect()
}

fn wrong(option: &'static str, why: &str) -> WebhookError {
    WebhookError::Scheme { option, why: why.to_owned() }
}
