//! HMACs with one of several secrets, and the encodings of secrets and signatures. Which fields are signed is decided
//! elsewhere.

use std::fmt;
use std::sync::Arc;

use base64::alphabet;
use base64::engine::{DecodePaddingMode, Engine as _, GeneralPurpose, GeneralPurposeConfig};
use hmac::{Hmac, KeyInit as _, Mac};
use sha1::Sha1;
use sha2::{Sha256, Sha512};

use super::WebhookError;
use crate::http::settings::{WebhookAlgorithm, WebhookEncoding, WebhookSecretEncoding};

/// Padding is redundant, and senders differ in whether they write it.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// At least one secret, stored as the initial state of its MACs.
#[derive(Clone)]
pub(super) struct Secrets(Arc<[Keyed]>);

/// An HMAC initialised with its secret.
#[derive(Clone)]
enum Keyed {
    Sha1(Hmac<Sha1>),
    Sha256(Hmac<Sha256>),
    Sha512(Hmac<Sha512>),
}

impl Secrets {
    pub(super) fn new<S: AsRef<str>>(
        algorithm: WebhookAlgorithm,
        encoding: WebhookSecretEncoding,
        secrets: impl IntoIterator<Item = S>,
    ) -> Result<Self, WebhookError> {
        let keyed = secrets.into_iter().enumerate().map(|(at, secret)| {
            let secret =
                decoded(secret.as_ref(), encoding).ok_or(WebhookError::Unreadable { at, encoding })?;
            if secret.is_empty() {
                Err(WebhookError::Empty { at })
            } else {
                Ok(Keyed::new(algorithm, &secret))
            }
        });
        let keyed: Arc<[_]> = keyed.collect::<Result<_, _>>()?;
        if keyed.is_empty() { Err(WebhookError::None) } else { Ok(Self(keyed)) }
    }

    /// Whether any of the signatures is valid for any of the secrets, over the concatenated parts.
    ///
    /// The parts are hashed once for each secret, independent of the number of signatures.
    pub(super) fn have_signed(&self, parts: &[&[u8]], signatures: &[Vec<u8>]) -> bool {
        self.0.iter().any(|keyed| keyed.clone().has_signed(parts, signatures))
    }
}

impl Keyed {
    fn new(algorithm: WebhookAlgorithm, secret: &[u8]) -> Self {
        const ANY_LENGTH: &str = "HMAC accepts keys of any length";
        match algorithm {
            WebhookAlgorithm::Sha1 => Self::Sha1(Hmac::new_from_slice(secret).expect(ANY_LENGTH)),
            WebhookAlgorithm::Sha256 => Self::Sha256(Hmac::new_from_slice(secret).expect(ANY_LENGTH)),
            WebhookAlgorithm::Sha512 => Self::Sha512(Hmac::new_from_slice(secret).expect(ANY_LENGTH)),
        }
    }

    fn has_signed(self, parts: &[&[u8]], signatures: &[Vec<u8>]) -> bool {
        match self {
            Self::Sha1(mac) => any_of(mac, parts, signatures),
            Self::Sha256(mac) => any_of(mac, parts, signatures),
            Self::Sha512(mac) => any_of(mac, parts, signatures),
        }
    }
}

/// Compares in constant time.
fn any_of<M: Mac + Clone>(mut mac: M, parts: &[&[u8]], signatures: &[Vec<u8>]) -> bool {
    parts.iter().for_each(|part| mac.update(part));
    signatures.iter().any(|signature| mac.clone().verify_slice(signature).is_ok())
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.len();
        write!(f, "{count} secret{}", if count == 1 { "" } else { "s" })
    }
}

fn decoded(secret: &str, encoding: WebhookSecretEncoding) -> Option<Vec<u8>> {
    match encoding {
        WebhookSecretEncoding::Text => Some(secret.as_bytes().to_vec()),
        WebhookSecretEncoding::Hex => from_hex(secret),
        WebhookSecretEncoding::Base64 => BASE64.decode(secret.strip_prefix("whsec_").unwrap_or(secret)).ok(),
    }
}

/// The length of a signature in bytes.
pub(super) const fn signature_length(algorithm: WebhookAlgorithm) -> usize {
    match algorithm {
        WebhookAlgorithm::Sha1 => 20,
        WebhookAlgorithm::Sha256 => 32,
        WebhookAlgorithm::Sha512 => 64,
    }
}

/// One signature; `None` if its encoding is invalid.
pub(super) fn read(text: &str, encoding: WebhookEncoding) -> Option<Vec<u8>> {
    match encoding {
        WebhookEncoding::Hex => from_hex(text),
        WebhookEncoding::Base64 => BASE64.decode(text).ok(),
    }
}

/// Hexadecimal digits in either case.
fn from_hex(text: &str) -> Option<Vec<u8>> {
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    let digit = |digit: u8| char::from(digit).to_digit(16);
    // Two digits of four bits each fit.
    pairs.iter().map(|[high, low]| Some((digit(*high)? << 4 | digit(*low)?) as u8)).collect()
}
