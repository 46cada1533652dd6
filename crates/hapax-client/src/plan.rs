//! [`Plan`]: the one request of a logical call, made once and sent unchanged on every attempt. [`Settings`]: what all calls
//! of a client share.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use hapax_core::Key;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use parking_lot::Mutex;
use reqwest::{Request, Url};

use crate::age::{KeyAge, Moment};
use crate::budget::RetryBudget;
use crate::error::Limit;
use crate::key_field;
use crate::policy::RetryPolicy;

/// One minute: long enough to wait for most operations that are in progress, short enough for a request that waits.
const DEADLINE: Duration = Duration::from_secs(60);
/// Two retries fit into the deadline, even when every attempt hangs.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(18);
/// The retention of records at many APIs, and of Hapax.
const LIFETIME: Duration = Duration::from_secs(24 * 3600);
/// A UUID with hyphens. The other format with a time, ULID, is also that of any number of 26 digits.
const UUID_LENGTH: usize = 36;

/// What all calls of a client share.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) retry: RetryPolicy,
    pub(crate) deadline: Duration,
    pub(crate) attempt_timeout: Duration,
    pub(crate) lifetime: Duration,
    pub(crate) budget: RetryBudget,
    pub(crate) key_field: HeaderName,
    pub(crate) keyed_methods: Vec<Method>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            retry: RetryPolicy::default(),
            deadline: DEADLINE,
            attempt_timeout: ATTEMPT_TIMEOUT,
            lifetime: LIFETIME,
            budget: RetryBudget::default(),
            key_field: key_field::IDEMPOTENCY_KEY,
            keyed_methods: vec![Method::POST, Method::PATCH],
        }
    }
}

/// A body for each attempt.
pub(crate) type MakeBody = Arc<dyn Fn() -> reqwest::Body + Send + Sync>;

/// Where the body of an attempt comes from.
pub(crate) enum BodySource {
    /// Bytes, or no body.
    Bytes(Option<Bytes>),
    /// A stream that can be made again.
    Factory(MakeBody),
    /// A stream that cannot be made again; empty once it was sent.
    OneShot(Mutex<Option<reqwest::Body>>),
}

/// One logical call: a request, its key and its limits.
pub(crate) struct Plan {
    pub(crate) settings: Settings,
    /// The request without its body.
    pub(crate) head: Request,
    pub(crate) body: BodySource,
    pub(crate) key: Option<Key>,
    pub(crate) age: KeyAge,
    /// Whether the caller continues a call of the journal: an answer may have been lost before.
    pub(crate) is_continued: bool,
    /// Whether the response is handed out before its body was received.
    pub(crate) streams_response: bool,
}

impl Plan {
    /// The request of one attempt; `None` when its body is spent.
    pub(crate) fn request(&self, url: &Url) -> Option<Request> {
        let mut request = self.head.try_clone()?;
        *request.body_mut() = match &self.body {
            BodySource::Bytes(bytes) => bytes.clone().map(Into::into),
            BodySource::Factory(make) => Some(make()),
            BodySource::OneShot(body) => Some(body.lock().take()?),
        };
        *request.url_mut() = url.clone();
        Some(request)
    }

    pub(crate) fn is_replayable(&self) -> bool {
        !matches!(self.body, BodySource::OneShot(_))
    }

    /// Whether a repetition may have a second effect.
    pub(crate) fn is_unprotected(&self) -> bool {
        self.key.is_none() && !self.head.method().is_safe()
    }

    /// What forbids to send the request again, after attempts of which one may have been received, or not.
    pub(crate) fn unrepeatable(&self, was_sent: bool) -> Option<Limit> {
        if !self.is_replayable() {
            return Some(Limit::OneShotBody);
        }
        (was_sent && self.is_unprotected()).then_some(Limit::Unkeyed)
    }

    /// The rest of the key's lifetime; infinite without a key.
    pub(crate) fn lifetime_left(&self, now: Moment) -> Duration {
        match self.key {
            None => Duration::MAX,
            Some(_) => self.settings.lifetime.saturating_sub(self.age.at(now)),
        }
    }

    /// Adds the key to the fields, unless the caller has set it there.
    pub(crate) fn put_key(&mut self) {
        if let Some(key) = &self.key {
            let value = || key_field::quoted(key);
            self.head
                .headers_mut()
                .entry(self.settings.key_field.clone())
                .or_insert_with(value)
                .set_sensitive(true);
        }
    }
}

/// When the key was made: what it says itself if it is a UUIDv7, otherwise now.
pub(crate) fn made_at(key: Option<&Key>, now: SystemTime) -> SystemTime {
    let stated = key.filter(|key| key.as_str().len() == UUID_LENGTH).and_then(Key::made_at);
    stated.unwrap_or(now).min(now)
}

/// Adds the fields of a JSON request that the caller has not set.
pub(crate) fn put_json_fields(headers: &mut HeaderMap) {
    let json = HeaderValue::from_static("application/json");
    headers.entry(CONTENT_TYPE).or_insert_with(|| json.clone());
    headers.entry(ACCEPT).or_insert_with(|| json);
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("method", self.head.method())
            .field("host", &self.head.url().host_str())
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}
