//! [`WebhookFault`]: why a request is refused as a webhook. It names fields and positions, never their content.

use std::borrow::Cow;

use hapax_core::KeyError;

use crate::http::problem::Code;

/// Why a request is refused as a webhook.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum WebhookFault {
    /// A field that the signature needs is missing.
    #[error("`{field}` is missing; sign the request")]
    SignatureMissing { field: Cow<'static, str> },
    /// A field that the signature needs is repeated.
    #[error("`{field}` is repeated; send it once")]
    SignatureRepeated { field: Cow<'static, str> },
    /// The field has no signature of the right kind, or no time.
    #[error("`{field}` has no valid signature or time; send it in the sender's format")]
    SignatureUnreadable { field: Cow<'static, str> },
    /// None of the signatures is valid for any of the secrets.
    #[error("no signature matches the body; check that both sides have the same secret")]
    SignatureWrong,
    /// Signed too long ago, or too far ahead of the local clock.
    #[error("the time in `{field}` is too far from now; sign every attempt again")]
    SignatureStale { field: Cow<'static, str> },
    /// The event has no id.
    #[error("`{place}` is missing; send the id of the event there")]
    KeyMissing { place: Cow<'static, str> },
    /// The id is not a valid key.
    #[error("`{place}` cannot be a key: {error}")]
    KeyInvalid { place: Cow<'static, str>, error: KeyError },
    /// The id is ambiguous.
    #[error("`{place}` is ambiguous or invalid; send one id in its format")]
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
