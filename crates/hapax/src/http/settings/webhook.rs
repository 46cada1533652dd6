//! How files describe webhooks: by the name of a sender, or by how it signs.

use std::fmt;

use serde::de::{Error as _, IntoDeserializer, MapAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer, Serialize};

use super::Span;

/// The sender of the webhooks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum WebhookName {
    /// Standard Webhooks.
    Standard,
    /// Svix: Standard Webhooks with other header names.
    Svix,
    /// GitHub.
    GitHub,
    /// Stripe.
    Stripe,
    /// Shopify.
    Shopify,
    /// Slack.
    Slack,
    /// Twilio. It signs the URL, so `url` is needed.
    Twilio,
    /// Linear.
    Linear,
    /// CloudEvents, which are not signed.
    CloudEvents,
}

impl WebhookName {
    /// The name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Svix => "svix",
            Self::GitHub => "github",
            Self::Stripe => "stripe",
            Self::Shopify => "shopify",
            Self::Slack => "slack",
            Self::Twilio => "twilio",
            Self::Linear => "linear",
            Self::CloudEvents => "cloudevents",
        }
    }
}

/// A sender of webhooks in a file: a name, or a table.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum WebhookSender {
    /// A known sender.
    Name(WebhookName),
    /// How a sender signs.
    Scheme(Box<WebhookScheme>),
}

impl<'de> Deserialize<'de> for WebhookSender {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Serde's errors for untagged enums do not list the names.
        deserializer.deserialize_any(SenderVisitor)
    }
}

struct SenderVisitor;

impl<'de> Visitor<'de> for SenderVisitor {
    type Value = WebhookSender;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a sender of webhooks or a table that describes one")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Self::Value, E> {
        WebhookName::deserialize(name.into_deserializer()).map(WebhookSender::Name)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        let scheme = WebhookScheme::deserialize(MapAccessDeserializer::new(map));
        scheme.map(|scheme| WebhookSender::Scheme(Box::new(scheme)))
    }
}

/// How a sender signs its webhooks (HMAC), and what identifies an event. Omitted options are those of `preset`, or else
/// the defaults given here.
///
/// ```
/// use hapax::http::settings::WebhookScheme;
///
/// let paystack: WebhookScheme = serde_json::from_str(
///     r#"{ "header": "x-paystack-signature", "algorithm": "sha512", "key": ["json:/data/id", "content"] }"#,
/// )?;
/// # let _ = paystack;
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct WebhookScheme {
    /// The sender to start from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<WebhookName>,
    /// The header that holds the signature, or several of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// The hash function of the HMAC: `sha256`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<WebhookAlgorithm>,
    /// How signatures are written: `hex`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<WebhookEncoding>,
    /// The separator between the items of the header. Without it, the header is one item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub separator: Option<String>,
    /// The prefix of an item that is a signature. Other items are skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// The signed content: text in which `{body}`, `{time}`, `{header:NAME}`, `{url}` and `{form}` are replaced by
    /// those of the request. Default `{body}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signed: Option<String>,
    /// The location of the time of signing: `header:NAME`, `json:/POINTER` in the body, or `item:PREFIX` in the
    /// signature's header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// The unit of that time: `s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_unit: Option<WebhookTimeUnit>,
    /// The maximum difference between that time and now, in either direction: `5m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<Span>,
    /// What identifies an event, the first that is present: `json:/POINTER` in the body, `header:NAME` of a signed
    /// header, or `content`, a digest of the signed content. Default `content`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<Vec<String>>,
    /// Values of a JSON body that are omitted from `content`, as JSON pointers: those that differ between two attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_exclude: Option<Vec<String>>,
    /// Headers that are part of `content` although they are not signed: the same body with another value is another
    /// event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_headers: Option<Vec<String>>,
    /// How the secrets are written: `text`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_encoding: Option<WebhookSecretEncoding>,
    /// The part before the path in the URL that the sender calls, for `{url}`: `https://hooks.example.com`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// The hash function of an HMAC.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum WebhookAlgorithm {
    /// SHA-1, which is still sound in an HMAC.
    Sha1,
    /// SHA-256.
    #[default]
    Sha256,
    /// SHA-512.
    Sha512,
}

/// How signatures are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum WebhookEncoding {
    /// Hexadecimal digits in either case.
    #[default]
    Hex,
    /// Base64, with padding or without.
    Base64,
}

/// How secrets are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum WebhookSecretEncoding {
    /// The bytes of the text.
    #[default]
    Text,
    /// Hexadecimal digits.
    Hex,
    /// Base64, with the prefix `whsec_` or without it.
    Base64,
}

/// The unit of the time of signing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum WebhookTimeUnit {
    /// Seconds since 1970.
    #[default]
    S,
    /// Milliseconds since 1970.
    Ms,
}

/// The secrets that webhooks are signed with. They are read from a file and never shown: not by `Debug`, not in an
/// error, not when settings are serialized.
#[derive(Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WebhookSecrets(pub Vec<String>);

impl fmt::Debug for WebhookSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WebhookSecrets({})", self.0.len())
    }
}

impl<'de> Deserialize<'de> for WebhookSecrets {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Serde's error would contain the invalid value.
        let secrets = Vec::deserialize(deserializer);
        secrets.map(Self).map_err(|_| D::Error::custom("`webhook_secrets` is not a list of texts"))
    }
}
