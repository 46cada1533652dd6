//! HMAC-SHA256 by one of several secrets, and the age of what it signs. It does not know which fields are signed.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::alphabet;
use base64::engine::{DecodePaddingMode, Engine as _, GeneralPurpose, GeneralPurposeConfig};
use hmac::digest::CtOutput;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::HeaderMap;
use sha2::Sha256;

use super::WebhookFault;

/// How far a signature's time may be from the clock here, either way: what Stripe's and Standard Webhooks' own
/// libraries allow.
const TOLERANCE: Duration = Duration::from_secs(5 * 60);

const SIGNATURE_LENGTH: usize = 32;

/// Padding says nothing that the length does not, and senders differ in whether they write it.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Why the secrets of a [`Webhook`](super::Webhook) cannot be used. It never shows them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SecretError {
    /// There is none, so nothing could be let in.
    None,
    /// One has no content, so everybody could sign.
    Empty {
        /// Which, counted from zero.
        at: usize,
    },
    /// One is no Base64.
    NotBase64 {
        /// Which, counted from zero.
        at: usize,
    },
}

impl fmt::Display for SecretError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("there is no webhook secret; give the one that the sender shows"),
            Self::Empty { at } => {
                write!(f, "webhook secret {at} is empty; give the one that the sender shows")
            }
            Self::NotBase64 { at } => {
                write!(
                    f,
                    "webhook secret {at} is not `whsec_` and Base64; give the one that the sender shows"
                )
            }
        }
    }
}

impl std::error::Error for SecretError {}

/// At least one secret, kept as the state that its MACs start from.
#[derive(Clone)]
pub(super) struct Secrets(Arc<[Hmac<Sha256>]>);

impl Secrets {
    /// Secrets that are what they say, byte for byte.
    pub(super) fn plain<S: AsRef<str>>(secrets: impl IntoIterator<Item = S>) -> Result<Self, SecretError> {
        Self::new(secrets.into_iter().map(|secret| Some(secret.as_ref().as_bytes().to_vec())))
    }

    /// Secrets written in Base64, with `whsec_` before it or without.
    pub(super) fn base64<S: AsRef<str>>(secrets: impl IntoIterator<Item = S>) -> Result<Self, SecretError> {
        Self::new(secrets.into_iter().map(|secret| {
            let secret = secret.as_ref();
            BASE64.decode(secret.strip_prefix("whsec_").unwrap_or(secret)).ok()
        }))
    }

    fn new(secrets: impl Iterator<Item = Option<Vec<u8>>>) -> Result<Self, SecretError> {
        let keyed = secrets.enumerate().map(|(at, secret)| {
            let secret = secret.ok_or(SecretError::NotBase64 { at })?;
            if secret.is_empty() {
                return Err(SecretError::Empty { at });
            }
            Ok(Hmac::new_from_slice(&secret).expect("HMAC takes keys of any length"))
        });
        let keyed: Arc<[_]> = keyed.collect::<Result<_, _>>()?;
        if keyed.is_empty() { Err(SecretError::None) } else { Ok(Self(keyed)) }
    }

    /// Whether any of the signatures is by any of the secrets over all parts, one after the other.
    ///
    /// The body is hashed once for each secret, however many signatures there are.
    pub(super) fn check(
        &self,
        field: &'static str,
        signatures: impl Iterator<Item = [u8; SIGNATURE_LENGTH]> + Clone,
        parts: &[&[u8]],
    ) -> Result<(), WebhookFault> {
        if signatures.clone().next().is_none() {
            return Err(WebhookFault::SignatureUnreadable { field });
        }
        let good = self.0.iter().any(|keyed| {
            let mut mac = keyed.clone();
            parts.iter().for_each(|part| mac.update(part));
            let expected = mac.finalize();
            // Equality of these is decided in constant time.
            signatures.clone().any(|signature| expected == CtOutput::new(signature.into()))
        });
        if good { Ok(()) } else { Err(WebhookFault::SignatureWrong) }
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.len();
        write!(f, "{count} secret{}", if count == 1 { "" } else { "s" })
    }
}

/// The one line of a field that the signature needs.
pub(super) fn text<'h>(headers: &'h HeaderMap, field: &'static str) -> Result<&'h str, WebhookFault> {
    let mut lines = headers.get_all(field).iter();
    match (lines.next(), lines.next()) {
        (Some(line), None) => line.to_str().map_err(|_| WebhookFault::SignatureUnreadable { field }),
        (None, _) => Err(WebhookFault::SignatureMissing { field }),
        (Some(_), Some(_)) => Err(WebhookFault::SignatureRepeated { field }),
    }
}

/// Whether the time, in seconds since 1970, is within [`TOLERANCE`] of now.
pub(super) fn check_age(field: &'static str, timestamp: &str, now: SystemTime) -> Result<(), WebhookFault> {
    // Digits alone: `parse` would take a sign too.
    if !timestamp.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(WebhookFault::SignatureUnreadable { field });
    }
    let signed_at: u64 = timestamp.parse().map_err(|_| WebhookFault::SignatureUnreadable { field })?;
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    if now.abs_diff(signed_at) > TOLERANCE.as_secs() {
        return Err(WebhookFault::SignatureStale { field });
    }
    Ok(())
}

pub(super) fn from_base64(text: &str) -> Option<[u8; SIGNATURE_LENGTH]> {
    // The engine wants room for whole groups of three.
    let mut bytes = [0; SIGNATURE_LENGTH + 1];
    let length = BASE64.decode_slice(text, &mut bytes).ok()?;
    bytes[..length].try_into().ok()
}

/// Hexadecimal digits in either case.
pub(super) fn from_hex(text: &str) -> Option<[u8; SIGNATURE_LENGTH]> {
    let digits: &[u8; 2 * SIGNATURE_LENGTH] = text.as_bytes().try_into().ok()?;
    let digit = |at: usize| char::from(digits[at]).to_digit(16);
    let mut bytes = [0; SIGNATURE_LENGTH];
    for (at, byte) in bytes.iter_mut().enumerate() {
        // Two digits of four bits each fit.
        *byte = (digit(2 * at)? << 4 | digit(2 * at + 1)?) as u8;
    }
    Some(bytes)
}
