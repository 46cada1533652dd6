//! The receiver of webhooks: verifies the signature and determines the key of the event (P-03).
//!
//! A sender is described by data: `preset.rs` has the known ones, `scheme.rs` parses and checks a description, and
//! `delivery.rs` verifies a request by it. They are independent of routes, records and responses; [`fault`] describes
//! why a request is refused, and its statuses are in the table of problems.

mod cloud_events;
mod delivery;
mod error;
mod fault;
mod members;
mod preset;
mod scheme;
mod signature;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hapax_core::Key;
use http::HeaderName;

pub(crate) use self::delivery::Delivery;
pub use self::error::WebhookError;
pub(crate) use self::fault::WebhookFault;
use self::scheme::Scheme;
use self::signature::Secrets;
use super::settings::{WebhookName, WebhookScheme, WebhookSender};

/// The default retention of a webhook's record: twice as long as senders retry.
///
/// Stripe stops retrying after three days, the schedule that Standard Webhooks suggests ends after three days and four
/// hours, and GitHub's "redeliver" is available for three days.
pub(crate) const RETENTION: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// A sender of webhooks: how it signs, and what identifies an event.
///
/// The signature is verified before anything is claimed. Several secrets may be given for rotation; a signature with
/// any of them is valid.
///
/// The key of an event is an id that the sender signs. If it signs none, the key is a digest of the signed content: the
/// same signed content is the same event, independent of its id.
///
/// ```
/// use hapax::http::Webhook;
///
/// let webhook = Webhook::standard(["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"])?;
/// assert_eq!(format!("{webhook:?}"), "Webhook(standard, 1 secret)");
/// # Ok::<(), hapax::http::WebhookError>(())
/// ```
#[derive(Clone)]
pub struct Webhook {
    scheme: Arc<Scheme>,
    /// `None` if the sender does not sign.
    secrets: Option<Secrets>,
    /// Its description in a file; `None` if a file cannot describe it.
    description: Option<WebhookSender>,
}

impl Webhook {
    /// A sender that follows [Standard Webhooks](https://www.standardwebhooks.com): the key is `webhook-id`.
    ///
    /// Secrets are written `whsec_` and Base64. Only the symmetric signatures (`v1`) count.
    ///
    /// # Errors
    /// [`WebhookError`] when there is no secret, or one is empty or not Base64.
    pub fn standard<S: AsRef<str>>(secrets: impl IntoIterator<Item = S>) -> Result<Self, WebhookError> {
        Self::preset(WebhookName::Standard, secrets)
    }

    /// Svix, which follows Standard Webhooks with other header names: the key is `svix-id`.
    ///
    /// # Errors
    /// As [`standard`](Self::standard).
    pub fn svix<S: AsRef<str>>(secrets: impl IntoIterator<Item = S>) -> Result<Self, WebhookError> {
        Self::preset(WebhookName::Svix, secrets)
    }

    /// GitHub: the signature is `X-Hub-Signature-256` and the key is a digest of the body.
    ///
    /// GitHub signs only the body, and not `X-GitHub-Delivery`: a redelivery with another id is the same event.
    ///
    /// # Errors
    /// [`WebhookError`] when there is no secret, or one is empty.
    pub fn github<S: AsRef<str>>(secrets: impl IntoIterator<Item = S>) -> Result<Self, WebhookError> {
        Self::preset(WebhookName::GitHub, secrets)
    }

    /// Stripe: the signature is `Stripe-Signature` and the key is the event's `id`, in the body.
    ///
    /// # Errors
    /// [`WebhookError`] when there is no secret, or one is empty.
    pub fn stripe<S: AsRef<str>>(secrets: impl IntoIterator<Item = S>) -> Result<Self, WebhookError> {
        Self::preset(WebhookName::Stripe, secrets)
    }

    /// Shopify: the signature is `X-Shopify-Hmac-Sha256` and the key is a digest of `X-Shopify-Topic` and the body.
    ///
    /// Shopify signs only the body. The topic is part of the key because two events may have the same body; an attacker
    /// with a signed body can send it once under each topic, so check the body before you act on a topic.
    ///
    /// # Errors
    /// [`WebhookError`] when there is no secret, or one is empty.
    pub fn shopify<S: AsRef<str>>(secrets: impl IntoIterator<Item = S>) -> Result<Self, WebhookError> {
        Self::preset(WebhookName::Shopify, secrets)
    }

    /// Slack: the signature is `X-Slack-Signature` and the key is `event_id` in the body, or a digest of the body if it
    /// has none.
    ///
    /// # Errors
    /// [`WebhookError`] when there is no secret, or one is empty.
    pub fn slack<S: AsRef<str>>(secrets: impl IntoIterator<Item = S>) -> Result<Self, WebhookError> {
        Self::preset(WebhookName::Slack, secrets)
    }

    /// Twilio: the signature is `X-Twilio-Signature` and the key is a digest of the URL and the form.
    ///
    /// Twilio signs the URL that it calls, so `url` is the part before the path: `https://hooks.example.com`. It signs
    /// neither a time nor `I-Twilio-Idempotency-Token`.
    ///
    /// # Errors
    /// [`WebhookError`] when there is no secret, one is empty, or `url` is invalid.
    pub fn twilio<S: AsRef<str>>(
        secrets: impl IntoIterator<Item = S>,
        url: &str,
    ) -> Result<Self, WebhookError> {
        let scheme = WebhookScheme {
            preset: Some(WebhookName::Twilio),
            url: Some(url.to_owned()),
            ..WebhookScheme::default()
        };
        Self::signed(scheme, secrets)
    }

    /// Linear: the signature is `Linear-Signature` and the key is a digest of the body without `webhookTimestamp`,
    /// which differs in each attempt.
    ///
    /// # Errors
    /// [`WebhookError`] when there is no secret, or one is empty.
    pub fn linear<S: AsRef<str>>(secrets: impl IntoIterator<Item = S>) -> Result<Self, WebhookError> {
        Self::preset(WebhookName::Linear, secrets)
    }

    /// [CloudEvents](https://cloudevents.io), one per request, in binary mode or as JSON: the key is made of `source`
    /// and `id`.
    ///
    /// CloudEvents have no signature, so a component in front must authenticate its callers.
    #[must_use]
    pub fn cloud_events() -> Self {
        let scheme = Scheme::of(&preset::scheme(WebhookName::CloudEvents)).expect("it needs no secret");
        let description = Some(WebhookSender::Name(WebhookName::CloudEvents));
        Self { scheme: Arc::new(scheme), secrets: None, description }
    }

    /// A sender that signs as described, with an HMAC.
    ///
    /// ```
    /// use hapax::http::Webhook;
    /// use hapax::http::settings::{WebhookAlgorithm, WebhookScheme};
    ///
    /// let paystack = WebhookScheme {
    ///     header: Some("x-paystack-signature".to_owned()),
    ///     algorithm: Some(WebhookAlgorithm::Sha512),
    ///     ..WebhookScheme::default()
    /// };
    /// let webhook = Webhook::signed(paystack, ["sk_test_1"])?;
    /// # let _ = webhook;
    /// # Ok::<(), hapax::http::WebhookError>(())
    /// ```
    ///
    /// # Errors
    /// [`WebhookError`] when the description is invalid, when it uses an id that is not signed as the key, and when
    /// there is no secret or one is not as described.
    pub fn signed<S: AsRef<str>>(
        scheme: WebhookScheme,
        secrets: impl IntoIterator<Item = S>,
    ) -> Result<Self, WebhookError> {
        Self::of(WebhookSender::Scheme(Box::new(scheme)), secrets)
    }

    /// A sender whose events are identified by one header.
    ///
    /// No signature is verified, so a component in front must authenticate the callers.
    #[must_use]
    pub fn unsigned(id_header: HeaderName) -> Self {
        Self { scheme: Arc::new(Scheme::unsigned(id_header)), secrets: None, description: None }
    }

    fn preset<S: AsRef<str>>(
        name: WebhookName,
        secrets: impl IntoIterator<Item = S>,
    ) -> Result<Self, WebhookError> {
        Self::of(WebhookSender::Name(name), secrets)
    }

    /// The sender that a file describes. The secrets of one that does not sign are ignored.
    pub(crate) fn of<S: AsRef<str>>(
        description: WebhookSender,
        secrets: impl IntoIterator<Item = S>,
    ) -> Result<Self, WebhookError> {
        let scheme = match &description {
            WebhookSender::Name(name) => Scheme::of(&preset::scheme(*name))?,
            WebhookSender::Scheme(scheme) => Scheme::of(scheme)?,
        };
        let keyed = |rules: &scheme::Signature| Secrets::new(rules.algorithm, rules.secret_encoding, secrets);
        let secrets = scheme.signature.as_ref().map(keyed).transpose()?;
        Ok(Self { scheme: Arc::new(scheme), secrets, description: Some(description) })
    }

    /// Its description in a file; `None` if a file cannot describe it.
    pub(crate) fn description(&self) -> Option<&WebhookSender> {
        self.description.as_ref()
    }

    /// Whether signatures are verified.
    pub(crate) fn is_signed(&self) -> bool {
        self.secrets.is_some()
    }

    /// The key of the event in this request, after verifying its signature.
    pub(crate) fn verify(&self, delivery: Delivery<'_>, now: SystemTime) -> Result<Key, WebhookFault> {
        if let (Some(signature), Some(secrets)) = (&self.scheme.signature, &self.secrets) {
            delivery.check(signature, secrets, now)?;
        }
        delivery.key(&self.scheme)
    }
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match &self.description {
            Some(WebhookSender::Name(name)) => name.name(),
            Some(WebhookSender::Scheme(scheme)) => scheme.preset.map_or("described", WebhookName::name),
            None => "unsigned",
        };
        match &self.secrets {
            Some(secrets) => write!(f, "Webhook({name}, {secrets:?})"),
            None => write!(f, "Webhook({name})"),
        }
    }
}

#[cfg(test)]
mod tests;
