//! Signature Version 4, for the one kind of request that this crate sends: a POST to `/` with a JSON body.
//!
//! It knows no clock and sends nothing.

use hapax_core::Timestamp;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use crate::credentials::Credentials;

const SERVICE: &str = "dynamodb";
const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const DAY_MS: u64 = 24 * 3600 * 1000;

/// What is signed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) region: &'a str,
    pub(crate) host: &'a str,
    pub(crate) target: &'a str,
    pub(crate) body: &'a [u8],
}

/// The content type of every request.
pub(crate) const CONTENT_TYPE: &str = "application/x-amz-json-1.0";

/// The headers that a signature adds.
#[derive(Debug)]
pub(crate) struct Signed {
    /// `x-amz-date`.
    pub(crate) date: String,
    /// `authorization`.
    pub(crate) authorization: String,
}

/// Signs `request` as of `now`.
pub(crate) fn sign(request: Request<'_>, credentials: &Credentials, now: Timestamp) -> Signed {
    let date = compact(now);
    let day = &date[..8];
    let mut fields = vec![
        ("content-type", CONTENT_TYPE),
        ("host", request.host),
        ("x-amz-date", &date),
        ("x-amz-target", request.target),
    ];
    if let Some(token) = credentials.session_token() {
        fields.insert(3, ("x-amz-security-token", token));
    }
    let names = fields.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
    let lines: String = fields.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
    let canonical = format!("POST\n/\n\n{lines}\n{names}\n{}", hex(&Sha256::digest(request.body)));
    let scope = format!("{day}/{}/{SERVICE}/aws4_request", request.region);
    let to_sign = format!("{ALGORITHM}\n{date}\n{scope}\n{}", hex(&Sha256::digest(canonical.as_bytes())));
    let key = signing_key(credentials.secret_key(), day, request.region, SERVICE);
    let signature = hex(&mac(&key, to_sign.as_bytes()));
    let authorization = format!(
        "{ALGORITHM} Credential={}/{scope}, SignedHeaders={names}, Signature={signature}",
        credentials.access_key()
    );
    Signed { date, authorization }
}

fn signing_key(secret: &str, day: &str, region: &str, service: &str) -> [u8; 32] {
    let first = mac(format!("AWS4{secret}").as_bytes(), day.as_bytes());
    [region, service, "aws4_request"].iter().fold(first, |key, part| mac(&key, part.as_bytes()))
}

fn mac(key: &[u8], text: &[u8]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length makes a MAC");
    mac.update(text);
    mac.finalize().into_bytes().into()
}

/// Bytes as small hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A moment as `20261115T203000Z`.
fn compact(at: Timestamp) -> String {
    let (days, seconds) = (at.as_millis() / DAY_MS, at.as_millis() % DAY_MS / 1000);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// The date of a day counted from 1970-01-01, by eras of 400 years that begin on a first of March.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests;
