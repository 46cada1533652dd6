//! [`WebhookFault`]: why a request is refused as a webhook. It names fields and positions, never their content.

use std::borrow::Cow;
use std::fmt;

use hapax_core::KeyError;

use crate::http::problem::Code;

/// Why a request is refused as a webhook.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum WebhookFault {
    /// A field that the signature needs is missing.
    SignatureMissing { field: Cow<'static, str> },
    /// A field that the signature needs is repeated.
    SignatureRepeated { field: Cow<'static, str> },
    /// The field has no signature of the right kind, or no time.
    SignatureUnreadable { field: Cow<'static, str> },
    /// None of the signatures is valid for any of the secrets.
    SignatureWrong,
    /// Signed too long ago, or too far ahead of the local clock.
    SignatureStale { field: Cow<'static, str> },
    /// The event has no id.
    KeyMissing { place: Cow<'static, str> },
    /// The id is not a valid key.
    KeyInvalid { place: Cow<'static, str>, error: KeyError },
    /// The id is ambiguous.
    KeyUnclear { place: Cow<'static, str> },
}

impl WebhookFault {
    /// The code of the problem for the sender.
    pub(crate) fn code(&self) -> Code {
        match self {
            Self::SignatureMissing { .. }
            | Self::SignatureRepeated { .. }
            | Self::SignatureUnreadable { .. }
            | Self::SignatureWrong
            | Self::SignatureStale { .. } => Code::SignatureInvalid,
            Self::KeyMissing { .. } => Code::KeyMissing,
            Self::KeyInvalid { .. } | Self::KeyUnclear { .. } => Code::KeyInvalid,
        }
    }

    /// The description for the sender, with what to do about it.
    pub(crate) fn detail(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for WebhookFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SignatureMissing { field } => write!(f, "`{field}` is missing; sign the request"),
            Self::SignatureRepeated { field } => write!(f, "`{field}` is there more than once; send it once"),
            Self::SignatureUnreadable { field } => {
                write!(f, "`{field}` does not hold what a signature needs; send it as the sender's rules say")
            }
            Self::SignatureWrong => {
                f.write_str("no signature fits the body; check that both sides have the same secret")
            }
            Self::SignatureStale { field } => {
                write!(f, "the time in `{field}` is too far from now; sign each attempt anew")
            }
            Self::KeyMissing { place } => write!(f, "`{place}` is missing; name the event there"),
            Self::KeyInvalid { place, error } => write!(f, "`{place}` cannot be a key: {error}"),
            Self::KeyUnclear { place } => {
                write!(f, "`{place}` does not name one event; send it once, in the form that its format has")
            }
        }
    }
}
