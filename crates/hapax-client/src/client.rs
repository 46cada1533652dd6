//! [`Client`]: the connections, limits and the journal that calls share.

mod builder;

use std::sync::Arc;

use http::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use self::builder::ClientBuilder;
use crate::call::{Call, CallBuilder};
use crate::error::Error;
use crate::journal::{Journal, OpenCall, OpenCallState, Resumed};
use crate::plan::Settings;

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
