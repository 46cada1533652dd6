//! [`WebhookError`]: why a [`Webhook`](super::Webhook) cannot be made. It never shows a secret.

use std::fmt;

use crate::http::settings::WebhookSecretEncoding;

/// Why a [`Webhook`](super::Webhook) cannot be made. It never shows a secret.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum WebhookError {
    /// There is no secret, so every request would be refused.
    None,
    /// A secret is empty, so every caller could sign.
    Empty {
        /// Its index, from zero.
        at: usize,
    },
    /// A secret is not in its encoding.
    Unreadable {
        /// Its index, from zero.
        at: usize,
        /// The expected encoding.
        encoding: WebhookSecretEncoding,
    },
    /// The description of the sender is invalid.
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

impl fmt::Display for WebhookError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("there is no webhook secret; give the one that the sender shows"),
            Self::Empty { at } => {
                write!(f, "webhook secret {at} is empty; give the one that the sender shows")
            }
            Self::Unreadable { at, encoding } => {
                let spelling = match encoding {
                    WebhookSecretEncoding::Text => "text",
                    WebhookSecretEncoding::Hex => "hexadecimal",
                    WebhookSecretEncoding::Base64 => "`whsec_` and Base64",
                };
                write!(f, "webhook secret {at} is not {spelling}; give the one that the sender shows")
            }
            Self::Scheme { option, why } => write!(f, "`{option}`: {why}"),
        }
    }
}

impl std::error::Error for WebhookError {}
