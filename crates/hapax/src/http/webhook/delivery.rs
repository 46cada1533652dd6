//! [`Delivery`]: one request, verified by its sender's scheme: its signature, its time, the key of its event.

use std::borrow::Cow;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hapax_core::{Fingerprint, Key};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName};
use sha2::{Digest as _, Sha256};

use super::members::{self, AmbiguousMember};
use super::scheme::{EventKeySource, Scheme, Signature, SignedPart, SigningTime, TimeSource};
use super::signature::{self, Secrets};
use super::{WebhookFault, cloud_events};
use crate::http::canonical::form;
use crate::http::settings::WebhookTimeUnit;

/// The query parameter in which Twilio signs a body that is not a form.
const BODY_DIGEST: &str = "bodySHA256=";

/// One request that may be a webhook.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery<'a> {
    /// Path and query, as the sender wrote them.
    pub(crate) target: &'a str,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: &'a [u8],
}

impl<'a> Delivery<'a> {
    /// Whether the signature is valid for one of the secrets, and recent enough.
    pub(super) fn check(
        self,
        rules: &Signature,
        secrets: &Secrets,
        now: SystemTime,
    ) -> Result<(), WebhookFault> {
        let header = self.text(&rules.header)?;
        let unreadable = || WebhookFault::SignatureUnreadable { field: field(&rules.header) };
        let items = || items(header, rules.separator.as_deref());
        let mut signatures: Vec<Vec<u8>> = items()
            .filter_map(|item| item.strip_prefix(&*rules.prefix))
            .filter_map(|text| signature::read(text, rules.encoding))
            .collect();
        signatures.retain(|bytes| bytes.len() == signature::signature_length(rules.algorithm));

        let time = match &rules.time {
            Some(SigningTime { place: TimeSource::Header(name), .. }) => {
                Some((self.text(name)?, field(name)))
            }
            Some(SigningTime { place: TimeSource::Item(prefix), .. }) => {
                let mut times = items().filter_map(|item| item.strip_prefix(&**prefix));
                match (times.next(), times.next()) {
                    (Some(time), None) => Some((time, field(&rules.header))),
                    _ => return Err(unreadable()),
                }
            }
            Some(SigningTime { place: TimeSource::Json(_), .. }) | None => None,
        };
        let parts = self.parts(rules, time.as_ref().map_or("", |(time, _)| *time))?;
        if let (Some(rules), Some((time, field))) = (&rules.time, time) {
            check_age(rules, field, time, now)?;
        }
        if signatures.is_empty() {
            return Err(unreadable());
        }
        let bytes: Vec<&[u8]> = parts.iter().map(|part| &**part).collect();
        if !secrets.have_signed(&bytes, &signatures) {
            return Err(WebhookFault::SignatureWrong);
        }
        self.check_signed(rules, now)
    }

    /// The checks that are done only after the signature is verified.
    fn check_signed(self, rules: &Signature, now: SystemTime) -> Result<(), WebhookFault> {
        if let Some(time @ SigningTime { place: TimeSource::Json(pointer), .. }) = &rules.time {
            let field = || Cow::from(pointer.to_string());
            let found = members::text_at(self.body, pointer).ok().flatten();
            let found = found.ok_or_else(|| WebhookFault::SignatureUnreadable { field: field() })?;
            check_age(time, field(), &found, now)?;
        }
        for (at, part) in rules.signed.iter().enumerate() {
            let (SignedPart::Header(name), Some(border)) = (part, rules.border(at)) else { continue };
            // The separator ends the id in the signed content. An id that contains it could be forged from another
            // event: its id, its time, and the start of its body as the time.
            if contains(self.line(name)?, border.as_bytes()) {
                return Err(WebhookFault::KeyUnclear { place: field(name) });
            }
        }
        Ok(())
    }

    /// The signed content, part by part.
    fn parts(self, rules: &Signature, time: &'a str) -> Result<Vec<Cow<'a, [u8]>>, WebhookFault>
    where
        Self: 'a,
    {
        let parts = rules.signed.iter().map(|part| match part {
            SignedPart::Text(text) => Ok(Cow::Owned(text.as_bytes().to_vec())),
            SignedPart::Time => Ok(Cow::Borrowed(time.as_bytes())),
            SignedPart::Body => Ok(Cow::Borrowed(self.body)),
            SignedPart::Form => self.form().map(Cow::Owned),
            SignedPart::Url => Ok(Cow::Owned(self.url(rules))),
            SignedPart::Header(name) => self.line(name).map(Cow::Borrowed),
        });
        parts.collect()
    }

    fn url(self, rules: &Signature) -> Vec<u8> {
        [rules.url.as_deref().unwrap_or_default(), self.target].concat().into_bytes()
    }

    /// The names and values of a form, sorted and without duplicates, concatenated. Any other body counts by its digest
    /// in the URL, which is signed as well.
    fn form(self) -> Result<Vec<u8>, WebhookFault> {
        let content_type = self.headers.get(CONTENT_TYPE).map_or(&b""[..], |line| line.as_bytes());
        let essence = content_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        if self.body.is_empty() {
            return Ok(Vec::new());
        }
        if essence.eq_ignore_ascii_case(b"application/x-www-form-urlencoded") {
            let mut pairs = form::pairs(self.body).ok_or(WebhookFault::SignatureWrong)?;
            pairs.sort();
            pairs.dedup();
            return Ok(pairs
                .iter()
                .flat_map(|(name, value)| [&**name, &**value])
                .collect::<Vec<_>>()
                .concat());
        }
        let digest = hex(&Sha256::digest(self.body));
        let query = self.target.split_once('?').map_or("", |(_, query)| query);
        let mut description = query.split('&').filter_map(|pair| pair.strip_prefix(BODY_DIGEST));
        match (description.next(), description.next()) {
            (Some(description), None) if description.eq_ignore_ascii_case(&digest) => Ok(Vec::new()),
            _ => Err(WebhookFault::SignatureWrong),
        }
    }

    /// The key of the event.
    pub(super) fn key(self, scheme: &Scheme) -> Result<Key, WebhookFault> {
        let Some((last, others)) = scheme.key.split_last() else {
            return self.content_key(scheme);
        };
        let found = others.iter().map(|place| self.key_at(place, scheme)).find(|found| {
            // If the id is missing or not a string, try the next place: the whole content is signed.
            !matches!(found, Err(WebhookFault::KeyMissing { .. } | WebhookFault::KeyUnclear { .. }))
        });
        found.unwrap_or_else(|| self.key_at(last, scheme))
    }

    fn key_at(self, place: &EventKeySource, scheme: &Scheme) -> Result<Key, WebhookFault> {
        match place {
            EventKeySource::Content => self.content_key(scheme),
            EventKeySource::CloudEvent => cloud_events::key(self.headers, self.body),
            EventKeySource::Header(name) => key(field(name), self.line(name)?),
            EventKeySource::Json(pointer) => {
                let place = || Cow::from(pointer.to_string());
                match members::text_at(self.body, pointer) {
                    Ok(Some(id)) => key(place(), id.as_bytes()),
                    Ok(None) => Err(WebhookFault::KeyMissing { place: place() }),
                    Err(AmbiguousMember) => Err(WebhookFault::KeyUnclear { place: place() }),
                }
            }
        }
    }

    /// A digest of the signed content, without the time and without the parts that differ between two attempts.
    fn content_key(self, scheme: &Scheme) -> Result<Key, WebhookFault> {
        let mut builder = Fingerprint::builder();
        let mut joined = Vec::new();
        for part in scheme.signature.iter().flat_map(|rules| &rules.signed) {
            match (part, &scheme.signature) {
                // The signature does not separate the URL from the form.
                (SignedPart::Url, Some(rules)) => joined.extend(self.url(rules)),
                (SignedPart::Form, _) => joined.extend(self.form()?),
                (SignedPart::Body, _) if scheme.content.exclude.is_empty() => {
                    builder = builder.part("body", self.body)
                }
                (SignedPart::Body, _) => builder = builder.json_selected("body", self.body, &scheme.content),
                (SignedPart::Header(name), _) => builder = builder.part("header", self.line(name)?),
                (SignedPart::Text(_) | SignedPart::Time | SignedPart::Url, _) => {}
            }
        }
        builder = builder.part("target", &joined);
        for name in &scheme.content_headers {
            builder = builder.part("unsigned", &self.line(name)?.to_ascii_lowercase());
        }
        let digest = hex(builder.build().digest());
        Ok(Key::new(digest).expect("hexadecimal digits are a key"))
    }

    /// The single line of a field that the signature needs.
    fn text(self, name: &HeaderName) -> Result<&'a str, WebhookFault> {
        let mut lines = self.headers.get_all(name).iter();
        let field = || field(name);
        match (lines.next(), lines.next()) {
            (Some(line), None) => {
                line.to_str().map_err(|_| WebhookFault::SignatureUnreadable { field: field() })
            }
            (None, _) => Err(WebhookFault::SignatureMissing { field: field() }),
            (Some(_), Some(_)) => Err(WebhookFault::SignatureRepeated { field: field() }),
        }
    }

    /// The single line of the field that identifies the event.
    fn line(self, name: &HeaderName) -> Result<&'a [u8], WebhookFault> {
        line(self.headers, name.as_str())
    }
}

/// The single line of the field that identifies the event.
pub(super) fn line<'h>(headers: &'h HeaderMap, name: &str) -> Result<&'h [u8], WebhookFault> {
    let place = || Cow::Owned(name.to_owned());
    let mut lines = headers.get_all(name).iter();
    match (lines.next(), lines.next()) {
        (Some(line), None) => Ok(line.as_bytes()),
        (None, _) => Err(WebhookFault::KeyMissing { place: place() }),
        (Some(_), Some(_)) => Err(WebhookFault::KeyUnclear { place: place() }),
    }
}

/// The id as a key, unparsed: senders do not quote.
fn key(place: Cow<'static, str>, id: &[u8]) -> Result<Key, WebhookFault> {
    let content = std::str::from_utf8(id)
        .map_err(|error| hapax_core::KeyError::Character { at: error.valid_up_to() })
        .and_then(Key::new);
    content.map_err(|error| WebhookFault::KeyInvalid { place, error })
}

fn items<'t>(header: &'t str, separator: Option<&str>) -> Box<dyn Iterator<Item = &'t str> + 't> {
    match separator {
        Some(separator) => {
            Box::new(header.split(separator).collect::<Vec<_>>().into_iter().map(str::trim_ascii))
        }
        None => Box::new(std::iter::once(header)),
    }
}

/// Whether the time, since 1970, is close enough to now.
fn check_age(
    rules: &SigningTime,
    field: Cow<'static, str>,
    time: &str,
    now: SystemTime,
) -> Result<(), WebhookFault> {
    // Digits only: `parse` would accept a sign too.
    let digits = Some(time).filter(|time| time.bytes().all(|byte| byte.is_ascii_digit()));
    let Some(signed_at) = digits.and_then(|digits| digits.parse::<u64>().ok()) else {
        return Err(WebhookFault::SignatureUnreadable { field });
    };
    let in_unit = |span: Duration| match rules.unit {
        WebhookTimeUnit::S => span.as_secs(),
        WebhookTimeUnit::Ms => u64::try_from(span.as_millis()).unwrap_or(u64::MAX),
    };
    let now = in_unit(now.duration_since(UNIX_EPOCH).unwrap_or_default());
    if now.abs_diff(signed_at) > in_unit(rules.tolerance) {
        return Err(WebhookFault::SignatureStale { field });
    }
    Ok(())
}

fn contains(text: &[u8], wanted: &[u8]) -> bool {
    text.windows(wanted.len()).any(|window| window == wanted)
}

fn field(name: &HeaderName) -> Cow<'static, str> {
    name.as_str().to_owned().into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
