//! The receiver of webhooks: whose signature to check, and which id to go by (P-03).
//!
//! It reads headers and a body that is already here, and gives the key of the event. It knows nothing of routes,
//! records or responses; [`fault`] says why something is no webhook, and the statuses are elsewhere.

mod cloud_events;
mod fault;
mod members;
mod signature;

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use hapax_core::Key;
use http::{HeaderMap, HeaderName};

pub(crate) use self::fault::WebhookFault;
pub use self::signature::SecretError;
use self::signature::Secrets;
use super::settings::WebhookName;

/// How long the record of a webhook should answer when nothing else is said: twice as long as senders retry.
///
/// Stripe gives up after three days, the schedule that Standard Webhooks suggests ends after three days and four
/// hours, and a person may press GitHub's "redeliver" for three days.
pub(crate) const RETENTION: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// A sender of webhooks: how it signs, and what it calls one event.
///
/// The signature is checked before anything is claimed. Several secrets may be given, so that one can be replaced
/// while both are in use; a signature by any of them is good.
///
/// ```
/// use hapax::http::Webhook;
///
/// let webhook = Webhook::standard(["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"])?;
/// assert_eq!(format!("{webhook:?}"), "Webhook(Standard(1 secret))");
/// # Ok::<(), hapax::http::SecretError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Webhook(Sender);

#[derive(Clone, Debug)]
enum Sender {
    Standard(Secrets),
    GitHub(Secrets),
    Stripe(Secrets),
    CloudEvents,
    Unsigned(HeaderName),
}

impl Webhook {
    /// A sender that follows [Standard Webhooks](https://www.standardwebhooks.com): the key is `webhook-id`.
    ///
    /// Secrets are written `whsec_` and Base64. Only the symmetric signatures (`v1`) count.
    ///
    /// # Errors
    /// [`SecretError`] when there is no secret, or one is empty or no Base64.
    pub fn standard<S: AsRef<str>>(secrets: impl IntoIterator<Item = S>) -> Result<Self, SecretError> {
        Secrets::base64(secrets).map(Sender::Standard).map(Self)
    }

    /// GitHub: the signature is `X-Hub-Signature-256` and the key is `X-GitHub-Delivery`.
    ///
    /// GitHub signs the body alone: no time, and not the id. Who holds one delivery with its signature can send it
    /// again under another id, so serve this over TLS only.
    ///
    /// # Errors
    /// [`SecretError`] when there is no secret, or one is empty.
    pub fn github<S: AsRef<str>>(secrets: impl IntoIterator<Item = S>) -> Result<Self, SecretError> {
        Secrets::plain(secrets).map(Sender::GitHub).map(Self)
    }

    /// Stripe: the signature is `Stripe-Signature` and the key is the event's `id`, in the body.
    ///
    /// # Errors
    /// [`SecretError`] when there is no secret, or one is empty.
    pub fn stripe<S: AsRef<str>>(secrets: impl IntoIterator<Item = S>) -> Result<Self, SecretError> {
        Secrets::plain(secrets).map(Sender::Stripe).map(Self)
    }

    /// [CloudEvents](https://cloudevents.io), one per request, in binary mode or as JSON: the key is made of `source`
    /// and `id`.
    ///
    /// CloudEvents have no signature, so something in front must know its callers.
    #[must_use]
    pub fn cloud_events() -> Self {
        Self(Sender::CloudEvents)
    }

    /// A sender whose events are named by one header, for example Twilio's `I-Twilio-Idempotency-Token`.
    ///
    /// No signature is checked, so something in front must.
    #[must_use]
    pub fn unsigned(id_header: HeaderName) -> Self {
        Self(Sender::Unsigned(id_header))
    }

    /// What it is called in files; none when it has no name there.
    pub(crate) fn name(&self) -> Option<WebhookName> {
        match &self.0 {
            Sender::Standard(_) => Some(WebhookName::Standard),
            Sender::GitHub(_) => Some(WebhookName::GitHub),
            Sender::Stripe(_) => Some(WebhookName::Stripe),
            Sender::CloudEvents => Some(WebhookName::CloudEvents),
            Sender::Unsigned(_) => None,
        }
    }

    /// The key of the event in this request, once its signature is known to be good.
    pub(crate) fn verify(
        &self,
        headers: &HeaderMap,
        body: &[u8],
        now: SystemTime,
    ) -> Result<Key, WebhookFault> {
        match &self.0 {
            Sender::Standard(secrets) => standard(secrets, headers, body, now),
            Sender::GitHub(secrets) => github(secrets, headers, body),
            Sender::Stripe(secrets) => stripe(secrets, headers, body, now),
            Sender::CloudEvents => cloud_events::key(headers, body),
            Sender::Unsigned(name) => key(name.as_str(), id(headers, name.as_str())?),
        }
    }
}

fn standard(
    secrets: &Secrets,
    headers: &HeaderMap,
    body: &[u8],
    now: SystemTime,
) -> Result<Key, WebhookFault> {
    const ID: &str = "webhook-id";
    const TIMESTAMP: &str = "webhook-timestamp";
    const SIGNATURE: &str = "webhook-signature";

    let signatures = signature::text(headers, SIGNATURE)?;
    let timestamp = signature::text(headers, TIMESTAMP)?;
    let id = id(headers, ID)?;
    signature::check_age(TIMESTAMP, timestamp, now)?;
    // Other versions, such as the asymmetric `v1a`, are not for us.
    let signatures = signatures
        .split(' ')
        .filter_map(|signature| signature.strip_prefix("v1,"))
        .filter_map(signature::from_base64);
    secrets.check(SIGNATURE, signatures, &[id, b".", timestamp.as_bytes(), b".", body])?;
    // The stop ends the id in what is signed. An id that holds one can be cut out of another event: its id, its
    // time, and the start of its body for a time.
    if id.contains(&b'.') {
        return Err(WebhookFault::KeyUnclear { place: ID.into() });
    }
    key(ID, id)
}

fn github(secrets: &Secrets, headers: &HeaderMap, body: &[u8]) -> Result<Key, WebhookFault> {
    const ID: &str = "x-github-delivery";
    const SIGNATURE: &str = "x-hub-signature-256";

    let signature = signature::text(headers, SIGNATURE)?;
    let signature = signature.strip_prefix("sha256=").and_then(signature::from_hex);
    secrets.check(SIGNATURE, signature.into_iter(), &[body])?;
    key(ID, id(headers, ID)?)
}

fn stripe(secrets: &Secrets, headers: &HeaderMap, body: &[u8], now: SystemTime) -> Result<Key, WebhookFault> {
    const ID: &str = "id";
    const SIGNATURE: &str = "stripe-signature";

    let header = signature::text(headers, SIGNATURE)?;
    let parts = header.split(',').filter_map(|part| part.split_once('='));
    let values =
        |name: &'static str| parts.clone().filter(move |(found, _)| *found == name).map(|(_, value)| value);
    let mut timestamps = values("t");
    let (Some(timestamp), None) = (timestamps.next(), timestamps.next()) else {
        return Err(WebhookFault::SignatureUnreadable { field: SIGNATURE });
    };
    signature::check_age(SIGNATURE, timestamp, now)?;
    let signatures = values("v1").filter_map(signature::from_hex);
    secrets.check(SIGNATURE, signatures, &[timestamp.as_bytes(), b".", body])?;

    let [id] = members::strings(body, [ID])?;
    key(ID, id.ok_or(WebhookFault::KeyMissing { place: ID.into() })?.as_bytes())
}

/// The one line of a field that names the event.
fn id<'h>(headers: &'h HeaderMap, name: &str) -> Result<&'h [u8], WebhookFault> {
    let place = || Cow::Owned(name.to_owned());
    let mut lines = headers.get_all(name).iter();
    match (lines.next(), lines.next()) {
        (Some(line), None) => Ok(line.as_bytes()),
        (None, _) => Err(WebhookFault::KeyMissing { place: place() }),
        (Some(_), Some(_)) => Err(WebhookFault::KeyUnclear { place: place() }),
    }
}

/// The id as a key, taken as it is: senders do not quote.
fn key(place: &str, id: &[u8]) -> Result<Key, WebhookFault> {
    let content = std::str::from_utf8(id)
        .map_err(|error| hapax_core::KeyError::Character { at: error.valid_up_to() })
        .and_then(Key::new);
    content.map_err(|error| WebhookFault::KeyInvalid { place: place.to_owned().into(), error })
}

#[cfg(test)]
mod tests;
