//! Signature Version 4, for the one kind of request that this crate sends: a POST to `/` with a JSON body.
//!
//! The request signer of `reqsign` reads this machine's clock and takes no other time. A signature must carry the service's
//! time, so only its hashes and dates are used.

use hapax_core::Timestamp;
use reqsign_core::hash::{hex_hmac_sha256, hex_sha256, hmac_sha256};
use reqsign_core::time::Timestamp as SigningTime;

use crate::credentials::Credentials;

const SERVICE: &str = "dynamodb";
const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// The parts of a request that are signed.
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
    let now_ms = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
    // A time beyond the calendar makes a signature that the service refuses.
    let now = SigningTime::from_millisecond(now_ms).unwrap_or_default();
    let (date, day) = (now.format_iso8601(), now.format_date());
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
    let canonical = format!("POST\n/\n\n{lines}\n{names}\n{}", hex_sha256(request.body));
    let scope = format!("{day}/{}/{SERVICE}/aws4_request", request.region);
    let to_sign = format!("{ALGORITHM}\n{date}\n{scope}\n{}", hex_sha256(canonical.as_bytes()));
    let key = signing_key(credentials.secret_key(), &day, request.region, SERVICE);
    let signature = hex_hmac_sha256(&key, to_sign.as_bytes());
    let authorization = format!(
        "{ALGORITHM} Credential={}/{scope}, SignedHeaders={names}, Signature={signature}",
        credentials.access_key()
    );
    Signed { date, authorization }
}

fn signing_key(secret: &str, day: &str, region: &str, service: &str) -> Vec<u8> {
    let first = hmac_sha256(format!("AWS4{secret}").as_bytes(), day.as_bytes());
    [region, service, "aws4_request"].iter().fold(first, |key, part| hmac_sha256(&key, part.as_bytes()))
}

#[cfg(test)]
mod tests;
