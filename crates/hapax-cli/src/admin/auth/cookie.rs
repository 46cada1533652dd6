//! The console's cookie: proof that its holder once showed the token, without the token in it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::header::COOKIE;
use http::{HeaderMap, HeaderValue};
use sha2::Sha256;

use super::fit_name;
use crate::admin::Token;

/// A working day; then the token is asked for again.
pub(crate) const VALID_FOR: Duration = Duration::from_secs(12 * 3600);

/// What the signature is for, so that it can never stand for anything else.
const PURPOSE: &[u8] = b"hapax console cookie 1\n";

/// Makes and checks cookies. Another token makes all of them worthless.
#[derive(Clone)]
pub(crate) struct Cookies {
    /// Browsers keep one jar for all ports of a host, so the port is part of the name.
    name: String,
    mac: Hmac<Sha256>,
}

impl Cookies {
    pub(crate) fn new(token: &Token, port: u16) -> Self {
        let mac = Hmac::new_from_slice(token.reveal().as_bytes()).expect("HMAC takes keys of any length");
        Self { name: format!("hapax_console_{port}"), mac }
    }

    /// A `Set-Cookie` for somebody who showed the token and calls themselves `name`.
    pub(crate) fn issue(&self, name: &str) -> HeaderValue {
        self.issue_until(name, seconds_now() + VALID_FOR.as_secs())
    }

    fn issue_until(&self, name: &str, until: u64) -> HeaderValue {
        let content = format!("{until}.{}", URL_SAFE_NO_PAD.encode(fit_name(name)));
        let signature = URL_SAFE_NO_PAD.encode(self.signed(&content).finalize().into_bytes());
        self.set(&format!("{content}.{signature}"), VALID_FOR)
    }

    /// A `Set-Cookie` that takes it back.
    pub(crate) fn revoke(&self) -> HeaderValue {
        self.set("", Duration::ZERO)
    }

    /// The name of whoever the request's cookie was issued to, while it is valid.
    pub(crate) fn open(&self, headers: &HeaderMap) -> Option<String> {
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        cookies
            .flat_map(|line| line.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .filter(|(name, _)| *name == self.name)
            .find_map(|(_, value)| self.opened(value))
    }

    fn opened(&self, value: &str) -> Option<String> {
        let (content, signature) = value.rsplit_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        self.signed(content).verify_slice(&signature).ok()?;
        let (until, name) = content.split_once('.')?;
        let is_valid = until.parse::<u64>().is_ok_and(|until| seconds_now() < until);
        let name = String::from_utf8(URL_SAFE_NO_PAD.decode(name).ok()?).ok()?;
        is_valid.then_some(name)
    }

    fn signed(&self, content: &str) -> Hmac<Sha256> {
        let mut mac = self.mac.clone();
        mac.update(PURPOSE);
        mac.update(content.as_bytes());
        mac
    }

    fn set(&self, value: &str, age: Duration) -> HeaderValue {
        let seconds = age.as_secs();
        let cookie = format!("{}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict", self.name);
        HeaderValue::try_from(cookie).expect("base64url, digits and dots are fit for a header")
    }
}

fn seconds_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests;
