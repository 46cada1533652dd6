//! Signatures of webhooks, made at the time of sending because they contain it.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::ExchangeError;
use crate::http_suite::case::{Line, Scheme, Sign};

/// The header lines that a sender adds in this scheme.
pub(super) fn lines(sign: &Sign, content: &[u8]) -> Result<Vec<Line>, ExchangeError> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let at = now.saturating_sub(sign.age.0).as_secs();
    let id = &sign.id;
    Ok(match sign.scheme {
        Scheme::Standard => {
            let secret = BASE64
                .decode(sign.secret.trim_start_matches("whsec_"))
                .map_err(|error| ExchangeError::because("`sign.secret`", error))?;
            let signature = mac(&secret, &[format!("{id}.{at}.").as_bytes(), content])?;
            vec![
                line("webhook-id", id.clone()),
                line("webhook-timestamp", at.to_string()),
                line("webhook-signature", format!("v1,{}", BASE64.encode(signature))),
            ]
        }
        Scheme::Github => {
            let signature = mac(sign.secret.as_bytes(), &[content])?;
            vec![
                line("X-GitHub-Delivery", id.clone()),
                line("X-Hub-Signature-256", format!("sha256={}", hex(&signature))),
            ]
        }
        Scheme::Stripe => {
            let signature = mac(sign.secret.as_bytes(), &[format!("{at}.").as_bytes(), content])?;
            vec![line("Stripe-Signature", format!("t={at},v1={}", hex(&signature)))]
        }
        Scheme::Shopify => {
            let signature = mac(sign.secret.as_bytes(), &[content])?;
            vec![
                line("X-Shopify-Webhook-Id", id.clone()),
                line("X-Shopify-Hmac-Sha256", BASE64.encode(signature)),
            ]
        }
        Scheme::Slack => {
            let signature = mac(sign.secret.as_bytes(), &[format!("v0:{at}:").as_bytes(), content])?;
            vec![
                line("X-Slack-Request-Timestamp", at.to_string()),
                line("X-Slack-Signature", format!("v0={}", hex(&signature))),
            ]
        }
    })
}

fn line(name: &str, value: String) -> Line {
    (name.to_owned(), value)
}

fn mac(secret: &[u8], parts: &[&[u8]]) -> Result<Vec<u8>, ExchangeError> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret)
        .map_err(|error| ExchangeError::because("`sign.secret`", error))?;
    for part in parts {
        mac.update(part);
    }
    Ok(mac.finalize().into_bytes().to_vec())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
