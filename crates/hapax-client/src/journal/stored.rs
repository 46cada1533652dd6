//! [`StoredCall`]: a call as the journal has it, without credentials.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use hapax_core::Key;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use reqwest::Url;
use serde::{Deserialize, Serialize};

use super::{JournalError, OpenCall, OpenCallState, as_ms};
use crate::age::KeyAge;
use crate::error::Error;
use crate::plan::{BodySource, Plan, Settings};

/// Fields that are not stored: a reader of the disk must not get the caller's rights.
const CREDENTIALS: [&str; 7] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "x-api-key",
    "api-key",
    "x-auth-token",
    "x-shopify-access-token",
];

/// A call without its body, as it is written.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct StoredHead {
    key: String,
    key_field: String,
    method: String,
    url: String,
    /// Each value as text of which every character is one byte.
    headers: Vec<(String, String)>,
    has_body: bool,
    made_at_ms: u64,
    lifetime_ms: u64,
}

/// A call that can be made again.
#[derive(Clone)]
pub(crate) struct StoredCall {
    key: Key,
    key_field: HeaderName,
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Option<Bytes>,
    made_at_ms: u64,
    lifetime_ms: u64,
}

impl StoredCall {
    /// The call of a plan, which has a key.
    pub(super) fn of(plan: &Plan) -> Result<Self, JournalError> {
        let BodySource::Bytes(body) = &plan.body else { return Err(JournalError::StreamedBody) };
        let Some(key) = plan.key.clone() else { unreachable!("a call without a key is not recorded") };
        let mut url = plan.head.url().clone();
        // Only a URL that cannot have credentials refuses to lose them.
        let _ = url.set_password(None).and_then(|()| url.set_username(""));
        let key_field = plan.settings.key_field.clone();
        let mut headers = HeaderMap::new();
        for (name, value) in plan.head.headers() {
            if !is_secret(name, value, &key_field) {
                headers.append(name.clone(), value.clone());
            }
        }
        let since_epoch = plan.age.made_at().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Self {
            key,
            key_field,
            method: plan.head.method().clone(),
            url,
            headers,
            body: body.clone(),
            made_at_ms: as_ms(since_epoch),
            lifetime_ms: as_ms(plan.settings.lifetime),
        })
    }

    /// The call as it is written.
    pub(super) fn head(&self) -> StoredHead {
        let field = |(name, value): (&HeaderName, &HeaderValue)| {
            (name.to_string(), value.as_bytes().iter().map(|byte| char::from(*byte)).collect())
        };
        StoredHead {
            key: self.key.as_str().to_owned(),
            key_field: self.key_field.to_string(),
            method: self.method.to_string(),
            url: self.url.to_string(),
            headers: self.headers.iter().map(field).collect(),
            has_body: self.body.is_some(),
            made_at_ms: self.made_at_ms,
            lifetime_ms: self.lifetime_ms,
        }
    }

    /// The call that was written; `None` when it is none.
    pub(super) fn read(head: StoredHead, body: Bytes) -> Option<Self> {
        let mut headers = HeaderMap::new();
        let key_field: HeaderName = head.key_field.parse().ok()?;
        for (name, value) in &head.headers {
            let bytes: Option<Vec<u8>> = value.chars().map(|byte| u8::try_from(byte).ok()).collect();
            let mut value = HeaderValue::from_bytes(&bytes?).ok()?;
            value.set_sensitive(*name == head.key_field);
            headers.append(name.parse::<HeaderName>().ok()?, value);
        }
        Some(Self {
            key: Key::new(&head.key).ok()?,
            key_field,
            method: head.method.parse().ok()?,
            url: Url::parse(&head.url).ok()?,
            headers,
            body: head.has_body.then_some(body),
            made_at_ms: head.made_at_ms,
            lifetime_ms: head.lifetime_ms,
        })
    }

    /// The same request again, with a key of this age. Its limits are those of the client, its lifetime is the shorter of both.
    pub(crate) fn plan(
        &self,
        age: KeyAge,
        http: &reqwest::Client,
        settings: &Settings,
    ) -> Result<Plan, Error> {
        let request = http.request(self.method.clone(), self.url.clone()).headers(self.headers.clone());
        let head = request.build().map_err(|fault| Error::request(fault.without_url()))?;
        Ok(Plan {
            settings: Settings {
                lifetime: settings.lifetime.min(Duration::from_millis(self.lifetime_ms)),
                key_field: self.key_field.clone(),
                ..settings.clone()
            },
            head,
            body: BodySource::Bytes(self.body.clone()),
            key: Some(self.key.clone()),
            age,
            is_continued: false,
            streams_response: false,
        })
    }

    /// Whether the two are attempts at one operation: a key names one per method and URL.
    pub(super) fn is_same_operation(&self, other: &Self) -> bool {
        self.key == other.key && self.method == other.method && self.url == other.url
    }

    pub(super) fn key_made_at(&self) -> SystemTime {
        let since_epoch = Duration::from_millis(self.made_at_ms);
        UNIX_EPOCH.checked_add(since_epoch).unwrap_or(UNIX_EPOCH)
    }

    pub(super) fn body(&self) -> &[u8] {
        self.body.as_deref().unwrap_or_default()
    }

    /// Whether the journal has listed this call as `listed`.
    pub(super) fn is_listed_as(&self, listed: &OpenCall) -> bool {
        self.key == listed.key && self.method == listed.method && self.url.as_str() == listed.url
    }

    pub(super) fn listed(&self, id: u64, state: OpenCallState) -> OpenCall {
        OpenCall {
            id,
            key: self.key.clone(),
            method: self.method.clone(),
            url: self.url.to_string(),
            key_made_at: self.key_made_at(),
            state,
        }
    }
}

impl fmt::Debug for StoredHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredHead").field("method", &self.method).finish_non_exhaustive()
    }
}

impl fmt::Debug for StoredCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredCall")
            .field("method", &self.method)
            .field("host", &self.url.host_str())
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

fn is_secret(name: &HeaderName, value: &HeaderValue, key_field: &HeaderName) -> bool {
    name != key_field && (value.is_sensitive() || CREDENTIALS.contains(&name.as_str()))
}

#[cfg(test)]
pub(super) mod tests;
