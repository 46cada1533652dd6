//! [`OpenCall`] and [`Resumed`]: calls of the journal as an application sees them.

use std::fmt;
use std::time::SystemTime;

use hapax_core::Key;
use http::Method;

use crate::error::Error;
use crate::response::Response;

/// A call without a final answer.
#[derive(Clone)]
#[non_exhaustive]
pub struct OpenCall {
    pub(super) id: u64,
    /// Its key.
    pub key: Key,
    /// The method of its request.
    pub method: Method,
    /// The URL of its request, without credentials.
    pub url: String,
    /// When its key was made.
    pub key_made_at: SystemTime,
    /// Whether it runs, waits or is uncertain.
    pub state: OpenCallState,
}

impl fmt::Debug for OpenCall {
    /// Without the query of the URL, which may hold a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenCall")
            .field("key", &self.key)
            .field("method", &self.method)
            .field("url", &self.url.split(['?', '#']).next())
            .field("key_made_at", &self.key_made_at)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

/// The state of an open call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum OpenCallState {
    /// This process makes it at the moment.
    Running,
    /// [`Client::resume`](crate::Client::resume) continues it.
    Open,
    /// It is not sent again: a person must find out what happened. A call with its key, method and URL continues it.
    Uncertain,
}

/// A call that was continued, and how it ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct Resumed {
    /// The call.
    pub call: OpenCall,
    /// Its end.
    pub result: Result<Response, Error>,
    /// The state that it has in the journal once its handler has returned `Ok`; none when it leaves the journal.
    pub next_state: Option<OpenCallState>,
}
