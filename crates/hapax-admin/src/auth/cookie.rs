//! The console's cookie: a session id instead of the token.
//!
//! A cookie is a random number that identifies a login in the memory of this process. A logout removes the login, and so
//! does the end of the process, which every change of the token requires: copies of the cookie are invalid then.

use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hapax_core::Nonce;
use http::header::COOKIE;
use http::{HeaderMap, HeaderValue};
use parking_lot::Mutex;

use super::sanitized_name;

/// The lifetime of a login.
pub(crate) const VALID_FOR: Duration = Duration::from_secs(12 * 3600);

/// The most logins. A new one replaces the oldest.
const LOGINS_MAX: usize = 1024;

/// Issues and validates cookies.
pub(crate) struct Cookies {
    /// Contains the port: browsers share the cookies of a host among all its ports.
    name: String,
    logins: Mutex<HashMap<Nonce, Login>>,
}

/// A login with the token.
struct Login {
    name: String,
    since: Instant,
}

impl Login {
    fn is_valid(&self) -> bool {
        self.since.elapsed() < VALID_FOR
    }
}

impl Cookies {
    pub(crate) fn new(port: u16) -> Self {
        Self { name: format!("hapax_console_{port}"), logins: Mutex::default() }
    }

    /// A `Set-Cookie` for a new login under this name.
    pub(crate) fn issue(&self, name: &str) -> HeaderValue {
        self.issue_since(name, Instant::now())
    }

    fn issue_since(&self, name: &str, since: Instant) -> HeaderValue {
        let nonce = Nonce::random();
        let mut logins = self.logins.lock();
        logins.retain(|_, login| login.is_valid());
        if logins.len() >= LOGINS_MAX
            && let Some(oldest) = logins.iter().min_by_key(|(_, login)| login.since).map(|(nonce, _)| *nonce)
        {
            logins.remove(&oldest);
        }
        logins.insert(nonce, Login { name: sanitized_name(name), since });
        self.set(&URL_SAFE_NO_PAD.encode(nonce.as_bytes()), VALID_FOR)
    }

    /// Removes the login of the request's cookie, and returns a `Set-Cookie` that deletes the cookie.
    pub(crate) fn revoke(&self, headers: &HeaderMap) -> HeaderValue {
        let mut logins = self.logins.lock();
        for nonce in self.sent(headers) {
            logins.remove(&nonce);
        }
        self.set("", Duration::ZERO)
    }

    /// The name of the request's login, if it is valid.
    pub(crate) fn open(&self, headers: &HeaderMap) -> Option<String> {
        let logins = self.logins.lock();
        let valid = |nonce| logins.get(&nonce).filter(|login| login.is_valid());
        self.sent(headers).find_map(valid).map(|login| login.name.clone())
    }

    /// The values of the request's cookies with this name.
    fn sent(&self, headers: &HeaderMap) -> impl Iterator<Item = Nonce> {
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        cookies
            .flat_map(|line| line.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .filter(|(name, _)| *name == self.name)
            .filter_map(|(_, value)| URL_SAFE_NO_PAD.decode(value).ok()?.try_into().ok())
            .map(Nonce::from_bytes)
    }

    fn set(&self, value: &str, age: Duration) -> HeaderValue {
        let seconds = age.as_secs();
        let cookie = format!("{}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict", self.name);
        HeaderValue::try_from(cookie).expect("base64url and digits are valid in a header")
    }
}

impl fmt::Debug for Cookies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cookies").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
