//! [`Call`]: one logical call, from its request to its final answer.

mod builder;

use hapax_core::Key;
use tracing::Instrument;

pub use self::builder::CallBuilder;
use crate::client::Client;
use crate::error::Error;
use crate::observe;
use crate::plan::Plan;
use crate::response::Response;
use crate::send::{self, Failure, Transport};

/// A call with its key, ready to be sent.
#[derive(Debug)]
#[must_use = "a call does nothing until it is sent"]
pub struct Call {
    client: Client,
    plan: Plan,
}

impl Call {
    pub(crate) fn new(client: Client, plan: Plan) -> Self {
        Self { client, plan }
    }

    /// The key, to be stored before the call is sent. A safe request has none.
    pub fn key(&self) -> Option<&Key> {
        self.plan.key.as_ref()
    }

    /// Makes the call.
    ///
    /// Dropping the future stops the retries. The operation may have happened: keep the key. A journal keeps it, and
    /// [`Client::resume`] continues the call.
    ///
    /// # Errors
    /// [`Error`]; after most of them the key must be kept.
    pub async fn send(mut self) -> Result<Response, Error> {
        let entry = match self.client.journal().filter(|_| self.plan.key.is_some()) {
            Some(journal) => Some(journal.begin(&mut self.plan).await.inspect_err(observe::call_not_begun)?),
            None => None,
        };
        let result = self.attempt().await;
        if let Some(entry) = entry {
            let end = entry.end_of(&result);
            entry.record(end).await;
        }
        result
    }

    /// Sends the request until the call has an end.
    pub(crate) async fn attempt(&self) -> Result<Response, Error> {
        let head = &self.plan.head;
        let span = observe::call_span(head.method(), head.url(), self.plan.key.as_ref());
        let mut http = HttpTransport(self.client.http());
        send::send(&self.plan, &mut http).instrument(span).await
    }
}

struct HttpTransport<'a>(&'a reqwest::Client);

impl Transport for HttpTransport<'_> {
    async fn send(&mut self, request: reqwest::Request) -> Result<reqwest::Response, Failure> {
        let url = request.url().clone();
        self.0.execute(request).await.map_err(|error| Failure::of(error, &url))
    }
}
