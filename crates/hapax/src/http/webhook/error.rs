//! [`WebhookError`]: why a [`Webhook`](super::Webhook) cannot be made. It never shows a secret.

use crate::http::settings::WebhookSecretEncoding;

/// Why a [`Webhook`](super::Webhook) cannot be made. It never shows a secret.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WebhookError {
    /// There is no secret, so every request would be refused.
    #[error("there is no webhook secret; use the one that the sender shows")]
    None,
    /// A secret is empty, so every caller could sign.
    #[error("webhook secret {at} is empty; use the one that the sender shows")]
    Empty {
        /// Its index, from zero.
        at: usize,
    },
    /// A secret is not in its encoding.
    #[error(
        "webhook secret {at} is not {}; use the one that the sender shows",
        encoding_name(*encoding)
    )]
    Unreadable {
        /// Its index, from zero.
        at: usize,
        /// The expected encoding.
        encoding: WebhookSecretEncoding,
    },
    /// The description of the sender is invalid.
    #[error("`{option}`: {why}")]
    Scheme {
        /// The option.
        option: &'static str,
        /// The reason.
        why: String,
    },
}

impl WebhookError {
    /// Whether it is about the secrets, and not about the description of the sender.
    #[must_use]
    pub fn is_about_secrets(&self) -> bool {
        !matches!(self, Self::Scheme { .. })
    }
}

fn encoding_name(encoding: WebhookSecretEncoding) -> &'static str {
    match encoding {
        WebhookSecretEncoding::Text => "text",
        WebhookSecretEncoding::Hex => "hexadecimal",
        WebhookSecretEncoding::Base64 => "`whsec_` and Base64",
    }
}
