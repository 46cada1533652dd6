//! The console's cookie: proof that its holder once showed the token, without the token in it.
//!
//! A cookie is a random number that stands for a login of this process. Logging out forgets the login, and so does the
//! end of the process, which every change of the token needs: a copy of the cookie is worth nothing then.

use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hapax_core::Nonce;
use http::header::COOKIE;
use http::{HeaderMap, HeaderValue};
use parking_lot::Mutex;

use super::fit_name;

/// A working day; then the token is asked for again.
pub(crate) const VALID_FOR: Duration = Duration::from_secs(12 * 3600);

/// More than there are people with the token. The oldest login makes room for one more.
const LOGINS_MAX: usize = 1024;

/// Makes and checks cookies.
pub(crate) struct Cookies {
    /// Browsers keep one jar for all ports of a host, so the port is part of the name.
    name: String,
    logins: Mutex<HashMap<Nonce, Login>>,
}

/// Somebody who showed the token.
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

    /// A `Set-Cookie` for somebody who showed the token and calls themselves `name`.
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
        logins.insert(nonce, Login { name: fit_name(name), since });
        self.set(&URL_SAFE_NO_PAD.encode(nonce.as_bytes()), VALID_FOR)
    }

    /// Forgets the login that the request's cookie stands for. A `Set-Cookie` that takes it back.
    pub(crate) fn revoke(&self, headers: &HeaderMap) -> HeaderValue {
        let mut logins = self.logins.lock();
        for nonce in self.sent(headers) {
            logins.remove(&nonce);
        }
        self.set("", Duration::ZERO)
    }

    /// The name of whoever the request's cookie was issued to, while it is valid.
    pub(crate) fn open(&self, headers: &HeaderMap) -> Option<String> {
        let logins = self.logins.lock();
        let valid = |nonce| logins.get(&nonce).filter(|login| login.is_valid());
        self.sent(headers).find_map(valid).map(|login| login.name.clone())
    }

    /// What a request has under the cookie's name.
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
        HeaderValue::try_from(cookie).expect("base64url and digits are fit for a header")
    }
}

impl fmt::Debug for Cookies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cookies").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
