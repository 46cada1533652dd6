//! [`Client`] and [`ClientBuilder`]: the connections, limits and the journal that calls share.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, Method};
use reqwest::redirect;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::budget::RetryBudget;
use crate::call::{Call, CallBuilder};
use crate::error::Error;
use crate::journal::{IfMissing, Journal, JournalError, OpenCall, OpenCallState, Resumed};
use crate::plan::Settings;
use crate::policy::RetryPolicy;

/// Well below the time of an attempt, so that a host without a route is told apart from a slow answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How a journal is named.
const FILE_SCHEME: &str = "file:";

/// An HTTP client that may retry every call: it sends one key for each, and the same request on every attempt.
///
/// A clone shares everything.
#[derive(Clone, Debug)]
pub struct Client {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    http: reqwest::Client,
    settings: Settings,
    journal: Option<Journal>,
}

impl Client {
    /// A client with the defaults.
    ///
    /// # Panics
    /// When TLS cannot be set up, as [`reqwest::Client::new`] does. [`builder`](Self::builder) returns that error.
    #[expect(clippy::new_without_default, reason = "it may panic")]
    pub fn new() -> Self {
        Self::builder().build().expect("without a journal only TLS can fail")
    }

    /// A client whose limits are chosen.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// A call with this method. POST and PATCH get a key; another method gets one by [`ClientBuilder::keyed`] or
    /// [`CallBuilder::key`]. Without a key only safe methods (GET, HEAD, OPTIONS, TRACE) are retried.
    pub fn request(&self, method: Method, url: impl AsRef<str>) -> CallBuilder {
        CallBuilder::new(self.clone(), method, url.as_ref())
    }

    /// A POST.
    pub fn post(&self, url: impl AsRef<str>) -> CallBuilder {
        self.request(Method::POST, url)
    }

    /// A PATCH.
    pub fn patch(&self, url: impl AsRef<str>) -> CallBuilder {
        self.request(Method::PATCH, url)
    }

    /// A PUT. It has no key, and is not retried, unless it is given one.
    pub fn put(&self, url: impl AsRef<str>) -> CallBuilder {
        self.request(Method::PUT, url)
    }

    /// A DELETE. It has no key, and is not retried, unless it is given one.
    pub fn delete(&self, url: impl AsRef<str>) -> CallBuilder {
        self.request(Method::DELETE, url)
    }

    /// A GET. It has no key, and is retried.
    pub fn get(&self, url: impl AsRef<str>) -> CallBuilder {
        self.request(Method::GET, url)
    }

    /// Sends JSON and reads JSON.
    ///
    /// # Errors
    /// [`Error::Status`] when the final answer is not a success, [`Error::Decode`] when it is not the expected JSON, and the
    /// errors of [`CallBuilder::send`].
    pub async fn post_json<T, R>(&self, url: impl AsRef<str>, body: &T) -> Result<R, Error>
    where
        T: Serialize + ?Sized,
        R: DeserializeOwned,
    {
        let response = self.post(url).json(body).send().await?;
        if !response.status().is_success() {
            return Err(Error::Status(Box::new(response)));
        }
        response.json().await
    }

    /// The calls in the journal that have no final answer: those that run, those that [`resume`](Self::resume) continues,
    /// and those that a person must settle. Empty without a journal.
    pub fn open_calls(&self) -> Vec<OpenCall> {
        self.journal().map(Journal::open_calls).unwrap_or_default()
    }

    /// Continues the calls of the journal that neither run nor are uncertain, one after the other, each with its key and its
    /// body. Call it at the start of a process.
    ///
    /// `handle` is given each call with its end, and the call leaves the journal after it has returned `Ok`: an answer that it
    /// did not deal with, since it failed or the process was killed, is asked for again by the next `resume`, with the same
    /// key. So `handle` may see the end of a call more than once. Its first error ends `resume`.
    ///
    /// Credentials are not in the journal: they come from the default headers of the [`reqwest::Client`]. A call that is
    /// refused, by a redirect, 401, 403, 407 or the service's idempotency layer, stays open: they may be missing there, and an
    /// earlier attempt may have had the effect.
    ///
    /// A service that identifies callers by their credentials takes a renewed token for another caller, and runs the operation
    /// again. Resume with the credentials of the original call, or have the service use a principal that stays the same.
    ///
    /// A call past the lifetime of its key is not sent; it becomes uncertain.
    ///
    /// # Errors
    /// The error of `handle`. What went wrong with a call is in [`Resumed::result`].
    pub async fn resume<F, Fut, E>(&self, mut handle: F) -> Result<(), E>
    where
        F: FnMut(Resumed) -> Fut,
        Fut: Future<Output = Result<(), E>>,
    {
        for call in self.open_calls() {
            self.resume_call(&call, &mut handle).await?;
        }
        Ok(())
    }

    /// Continues one call of [`open_calls`](Self::open_calls), as [`resume`](Self::resume) does with all. One that runs, is
    /// uncertain or has left the journal is not sent, and `handle` is not called.
    ///
    /// # Errors
    /// The error of `handle`; the call stays in the journal then.
    pub async fn resume_call<F, Fut, E>(&self, call: &OpenCall, handle: F) -> Result<(), E>
    where
        F: FnOnce(Resumed) -> Fut,
        Fut: Future<Output = Result<(), E>>,
    {
        let Some(journal) = self.journal() else { return Ok(()) };
        let Some(taken) = journal.continue_call(call).await else { return Ok(()) };
        let (result, ended) = match taken {
            Ok((entry, stored, age)) => match stored.plan(age, &self.shared.http, self.settings()) {
                Ok(plan) => {
                    let result = Call::new(self.clone(), plan).attempt().await;
                    let end = entry.end_of(&result);
                    (result, Some((entry, end)))
                }
                Err(error) => (Err(error), None),
            },
            Err(error) => (Err(Error::Journal(error)), None),
        };
        let next_state = match &ended {
            Some((_, end)) => end.state(),
            None => Some(OpenCallState::Open),
        };
        handle(Resumed { call: call.clone(), result, next_state }).await?;
        if let Some((entry, end)) = ended {
            entry.record(end).await;
        }
        Ok(())
    }

    /// Removes a call from the journal, once a person has found out what happened. A call that is not in it changes nothing.
    ///
    /// # Errors
    /// [`Error::Journal`] when it cannot be written.
    pub async fn forget(&self, call: &OpenCall) -> Result<(), Error> {
        match self.journal() {
            Some(journal) => journal.forget(call).await.map_err(Error::Journal),
            None => Ok(()),
        }
    }

    pub(crate) fn http(&self) -> &reqwest::Client {
        &self.shared.http
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    pub(crate) fn journal(&self) -> Option<&Journal> {
        self.shared.journal.as_ref()
    }
}

/// The choices of a [`Client`].
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct ClientBuilder {
    http: Option<reqwest::Client>,
    pub(crate) settings: Settings,
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
