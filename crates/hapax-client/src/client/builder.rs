//! [`ClientBuilder`]: the choices of a client.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, Method};
use reqwest::redirect;

use super::{Client, Shared};
use crate::budget::RetryBudget;
use crate::error::Error;
use crate::journal::{IfMissing, Journal, JournalError};
use crate::plan::Settings;
use crate::policy::RetryPolicy;

/// Well below the time of an attempt, so that a host without a route is told apart from a slow answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How a journal is named.
const FILE_SCHEME: &str = "file:";

/// The choices of a [`Client`].
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct ClientBuilder {
    http: Option<reqwest::Client>,
    settings: Settings,
    journal: Option<(String, IfMissing)>,
}

impl ClientBuilder {
    /// The HTTP client, with its TLS, proxies and default headers.
    ///
    /// Build it with `redirect(redirect::Policy::none())`: its policy cannot be read, and a client that follows redirects by
    /// itself carries the key to other origins, and reports a target that it cannot reach like a request that was not sent. Build it with `retry(reqwest::retry::never())`: one layer retries.
    pub fn http(self, http: reqwest::Client) -> Self {
        Self { http: Some(http), ..self }
    }

    /// The retries of each call.
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.settings.retry = retry;
        self
    }

    /// The time of a call with all attempts and pauses; one minute unless chosen. It also bounds the wait for an operation
    /// that is in progress.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.settings.deadline = deadline;
        self
    }

    /// The time of one attempt; 18 seconds unless chosen.
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.settings.attempt_timeout = timeout;
        self
    }

    /// How long the service keeps the record of a key; 24 hours unless chosen. No attempt is made later than that after the
    /// key was made: the service would take it for a new operation.
    pub fn lifetime(mut self, lifetime: Duration) -> Self {
        self.settings.lifetime = lifetime;
        self
    }

    /// The retry budget, which several clients may share.
    pub fn budget(mut self, budget: RetryBudget) -> Self {
        self.settings.budget = budget;
        self
    }

    /// The field of the key, where the service does not use `Idempotency-Key`.
    pub fn key_header(mut self, name: HeaderName) -> Self {
        self.settings.key_field = name;
        self
    }

    /// Gives calls with this method a key too, such as PUT or DELETE.
    pub fn keyed(mut self, method: Method) -> Self {
        self.settings.keyed_methods.push(method);
        self
    }

    /// A journal in a directory, `file:DIR`: a call is recorded there before its first attempt, and a restarted process
    /// [resumes](Client::resume) it with the same key and body. One process at a time uses a journal.
    ///
    /// Bodies and keys are stored as they are, in files that their owner can read; credential fields are not stored.
    ///
    /// A call costs one fsync, before it is sent. That it has ended is written before its answer is returned, and synced with
    /// a later call: a crash of the machine in between leaves the call open, and it is made again with the same key.
    pub fn journal(self, url: impl Into<String>) -> Self {
        Self { journal: Some((url.into(), IfMissing::Create)), ..self }
    }

    /// The same with a journal that exists: a missing one is an error, and none is created.
    pub fn existing_journal(self, url: impl Into<String>) -> Self {
        Self { journal: Some((url.into(), IfMissing::Refuse)), ..self }
    }

    /// Opens the journal, if there is one, and builds the client. Reads and writes files.
    ///
    /// # Errors
    /// [`Error::Journal`] when the journal cannot be opened, [`Error::Request`] when TLS cannot be set up.
    pub fn build(self) -> Result<Client, Error> {
        let http = match self.http {
            Some(http) => http,
            None => default_http().map_err(Error::request)?,
        };
        let journal = self.journal.map(|(url, if_missing)| open_journal(&url, if_missing)).transpose();
        let journal = journal.map_err(Error::Journal)?;
        Ok(Client { shared: Arc::new(Shared { http, settings: self.settings, journal }) })
    }

    /// The same retries as a middleware of `reqwest_middleware`, which has its own HTTP client and no journal.
    ///
    /// # Errors
    /// [`Error::Request`] when a journal or an HTTP client was chosen: they would not be used.
    #[cfg(feature = "middleware")]
    pub fn build_middleware(self) -> Result<crate::RetryMiddleware, Error> {
        if self.journal.is_some() {
            return Err(Error::request("a middleware has no journal; build a client"));
        }
        if self.http.is_some() {
            return Err(Error::request("a middleware has the HTTP client of its chain; choose none here"));
        }
        Ok(crate::RetryMiddleware::new(self.settings))
    }
}

fn default_http() -> Result<reqwest::Client, reqwest::Error> {
    reqwest::Client::builder()
        .redirect(redirect::Policy::none())
        .retry(reqwest::retry::never())
        .connect_timeout(CONNECT_TIMEOUT)
        .build()
}

fn open_journal(url: &str, if_missing: IfMissing) -> Result<Journal, JournalError> {
    match url.strip_prefix(FILE_SCHEME).filter(|path| !path.is_empty()) {
        Some(path) => Journal::open(PathBuf::from(path), if_missing),
        None => Err(JournalError::Url { url: url.to_owned() }),
    }
}
