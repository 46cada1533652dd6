//! [`CallBuilder`]: the description of one logical call.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use hapax_core::Key;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use parking_lot::Mutex;
use reqwest::Url;
use serde::Serialize;

use super::Call;
use crate::age::{KeyAge, Moment};
use crate::client::Client;
use crate::error::{BoxError, Error};
use crate::key_field;
use crate::plan::{self, BodySource, Plan, Settings};
use crate::policy::RetryPolicy;
use crate::response::Response;

/// A call that is being described. [`send`](Self::send) makes it; [`build`](Self::build) stops before, so that the key can be
/// stored first.
#[must_use = "a call does nothing until it is sent"]
pub struct CallBuilder {
    client: Client,
    settings: Settings,
    method: Method,
    url: String,
    headers: HeaderMap,
    key: Option<Key>,
    made_at: Option<SystemTime>,
    body: BodySource,
    is_json: bool,
    streams_response: bool,
    /// The first thing that was wrong.
    fault: Option<BoxError>,
}

impl CallBuilder {
    pub(crate) fn new(client: Client, method: Method, url: &str) -> Self {
        Self {
            settings: client.settings().clone(),
            client,
            method,
            url: url.to_owned(),
            headers: HeaderMap::new(),
            key: None,
            made_at: None,
            body: BodySource::Bytes(None),
            is_json: false,
            streams_response: false,
            fault: None,
        }
    }

    /// The key of the operation, instead of a random one: derived from data ([`Key::derive`]), stored by an earlier attempt,
    /// or the key of an effect in a protected handler (`cx.effect_key("charge")`). A call with a key sends it, whatever
    /// its method.
    pub fn key(self, key: Key) -> Self {
        Self { key: Some(key), ..self }
    }

    /// When the key was made, for a key that was stored. A UUID of version 7 says it itself; other keys count from now.
    pub fn key_made_at(self, made_at: SystemTime) -> Self {
        Self { made_at: Some(made_at), ..self }
    }

    /// Adds a field. One named `Idempotency-Key` is the key of the call, and is sent as it is.
    pub fn header<N, V>(mut self, name: N, value: V) -> Self
    where
        N: TryInto<HeaderName, Error: Into<BoxError>>,
        V: TryInto<HeaderValue, Error: Into<BoxError>>,
    {
        match (name.try_into(), value.try_into()) {
            (Ok(name), Ok(value)) => {
                self.headers.append(name, value);
            }
            (Err(fault), _) => self.note(fault),
            (_, Err(fault)) => self.note(fault),
        }
        self
    }

    /// Adds fields.
    pub fn headers(mut self, headers: HeaderMap) -> Self {
        self.headers.extend(headers);
        self
    }

    /// Adds `Authorization: Bearer …`. It is not written to a journal.
    pub fn bearer_auth(mut self, token: impl AsRef<str>) -> Self {
        match HeaderValue::try_from(format!("Bearer {}", token.as_ref())) {
            Ok(mut value) => {
                value.set_sensitive(true);
                self.headers.insert(http::header::AUTHORIZATION, value);
            }
            Err(fault) => self.note(fault),
        }
        self
    }

    /// The body.
    pub fn body(self, body: impl Into<Bytes>) -> Self {
        Self { body: BodySource::Bytes(Some(body.into())), ..self }
    }

    /// The body as JSON. It is written once, so that every attempt sends the same bytes.
    pub fn json<T: Serialize + ?Sized>(mut self, body: &T) -> Self {
        match serde_json::to_vec(body) {
            Ok(body) => Self { is_json: true, ..self.body(body) },
            Err(fault) => {
                self.note(fault);
                self
            }
        }
    }

    /// A body that is made again for each attempt, such as a file that is opened again. It must be the same each time.
    pub fn body_stream(self, make: impl Fn() -> reqwest::Body + Send + Sync + 'static) -> Self {
        Self { body: BodySource::Factory(Arc::new(make)), ..self }
    }

    /// A body that cannot be made again: the call has a single attempt.
    pub fn body_once(self, body: impl Into<reqwest::Body>) -> Self {
        Self { body: BodySource::OneShot(Mutex::new(Some(body.into()))), ..self }
    }

    /// The retries of this call.
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.settings.retry = retry;
        self
    }

    /// The time of this call, with all attempts and pauses.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.settings.deadline = deadline;
        self
    }

    /// The time of one attempt.
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.settings.attempt_timeout = timeout;
        self
    }

    /// Hands the response out before its body was received. A body that is cut off is then the caller's to handle. Bodies of
    /// type `text/event-stream` are never waited for.
    pub fn stream_response(self) -> Self {
        Self { streams_response: true, ..self }
    }

    /// Makes the request and its key, and sends nothing.
    ///
    /// # Errors
    /// [`Error::Request`] when the request is not valid.
    pub fn build(mut self) -> Result<Call, Error> {
        if let Some(fault) = self.fault {
            return Err(Error::Request(fault));
        }
        let url = Url::parse(&self.url).map_err(Error::request)?;
        let key = self.choose_key()?;
        if self.is_json {
            plan::put_json_fields(&mut self.headers);
        }
        let now = Moment::now();
        let made_at = self.made_at.unwrap_or_else(|| plan::made_at(key.as_ref(), now.wall)).min(now.wall);
        let age = KeyAge::new(made_at, now);
        let head = self.client.http().request(self.method, url).headers(self.headers).build();
        let head = head.map_err(|fault| Error::request(fault.without_url()))?;
        let (body, settings, streams_response) = (self.body, self.settings, self.streams_response);
        let mut plan = Plan { settings, head, body, key, age, is_continued: false, streams_response };
        plan.put_key();
        Ok(Call { client: self.client, plan })
    }

    /// Makes the call.
    ///
    /// # Errors
    /// [`Error`]; after most of them the key must be kept.
    pub async fn send(self) -> Result<Response, Error> {
        self.build()?.send().await
    }

    fn choose_key(&self) -> Result<Option<Key>, Error> {
        let in_headers =
            key_field::chosen(&self.headers, &self.settings.key_field).map_err(Error::request)?;
        match (&self.key, in_headers) {
            (Some(key), Some(in_headers)) if *key != in_headers => {
                Err(Error::request("the call has one key, and its headers another"))
            }
            (_, Some(key)) => Ok(Some(key)),
            (Some(key), None) => Ok(Some(key.clone())),
            (None, None) => Ok(self.settings.keyed_methods.contains(&self.method).then(Key::random)),
        }
    }

    fn note(&mut self, fault: impl Into<BoxError>) {
        self.fault.get_or_insert(fault.into());
    }
}
