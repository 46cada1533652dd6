//! [`Response`]: a final answer, with what its call knows about it. Reads bodies within a limit, so that an answer that is
//! cut off counts as none.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use hapax_core::Key;
use http::{HeaderMap, StatusCode};
use http_body::{Body, Frame, SizeHint};
use reqwest::ResponseBuilderExt;
use serde::de::DeserializeOwned;

use crate::error::{BoxError, Error};
use crate::retry;

/// The part of a body that is read before the response is handed out. A longer rest is streamed.
pub(crate) const BUFFERED_MAX: usize = 1 << 20;

/// The final answer of a service.
///
/// Its body, up to 1 MiB, was received completely: an answer that was cut off is retried. A longer rest is received while it
/// is read.
pub struct Response {
    pub(crate) inner: reqwest::Response,
    pub(crate) key: Option<Key>,
    pub(crate) attempts: u32,
}

impl Response {
    /// The status.
    pub fn status(&self) -> StatusCode {
        self.inner.status()
    }

    /// The fields.
    pub fn headers(&self) -> &HeaderMap {
        self.inner.headers()
    }

    /// The key of the call. A safe request has none.
    pub fn key(&self) -> Option<&Key> {
        self.key.as_ref()
    }

    /// Whether the server says that it repeated the answer of an earlier attempt.
    pub fn replayed(&self) -> bool {
        retry::is_replayed(self.headers())
    }

    /// The number of attempts, with the first.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// The body.
    ///
    /// # Errors
    /// When the rest of a long body is cut off.
    pub async fn bytes(self) -> Result<Bytes, Error> {
        let key = self.key;
        self.inner.bytes().await.map_err(|source| Error::Decode { key, source: source.without_url().into() })
    }

    /// The body, read as JSON.
    ///
    /// # Errors
    /// [`Error::Decode`] when it is something else.
    pub async fn json<T: DeserializeOwned>(self) -> Result<T, Error> {
        let key = self.key.clone();
        let body = self.bytes().await?;
        serde_json::from_slice(&body).map_err(|source| Error::Decode { key, source: source.into() })
    }

    /// The response of the HTTP client, for everything else.
    pub fn into_inner(self) -> reqwest::Response {
        self.inner
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("status", &self.status())
            .field("key", &self.key)
            .field("attempts", &self.attempts)
            .finish_non_exhaustive()
    }
}

/// Receives the body up to [`BUFFERED_MAX`] bytes. Returns the same response and what was read.
pub(crate) async fn buffer(mut response: reqwest::Response) -> Result<(reqwest::Response, Bytes), BoxError> {
    let mut read = BytesMut::new();
    let mut is_complete = false;
    while read.len() <= BUFFERED_MAX {
        match response.chunk().await.map_err(reqwest::Error::without_url)? {
            Some(chunk) => read.extend_from_slice(&chunk),
            None => {
                is_complete = true;
                break;
            }
        }
    }
    let read = read.freeze();
    let url = response.url().clone();
    let mut parts = http::Response::builder().url(url).body(())?;
    *parts.status_mut() = response.status();
    *parts.version_mut() = response.version();
    *parts.headers_mut() = std::mem::take(response.headers_mut());
    parts.extensions_mut().extend(std::mem::take(response.extensions_mut()));
    let body = if is_complete {
        reqwest::Body::from(read.clone())
    } else {
        reqwest::Body::wrap(Continued { first: Some(read.clone()), rest: response.into() })
    };
    Ok((parts.map(|()| body).into(), read))
}

/// A body of which the first part was read.
struct Continued {
    first: Option<Bytes>,
    rest: reqwest::Body,
}

impl Body for Continued {
    type Data = Bytes;
    type Error = reqwest::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, reqwest::Error>>> {
        match self.first.take() {
            Some(first) => Poll::Ready(Some(Ok(Frame::data(first)))),
            None => Pin::new(&mut self.rest).poll_frame(context),
        }
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}
