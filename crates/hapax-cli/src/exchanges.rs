//! [`Exchanges`]: what this process asks of others in its own name, one request and one whole answer at a time.
//!
//! Questions to `reconcile` and `authorise` URLs, spans for a collector, and commands to a running sidecar go this way.
//! Requests of callers do not: they are the proxy's.
//!
//! Connections are kept for the next request. One that was closed meanwhile is found out by using it: a request that it
//! hands back unsent goes out on a new connection, and so does one that asks without changing anything. No other is
//! ever sent twice.

mod connect;
mod kept;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::HOST;
use http::uri::{Authority, Scheme};
use http::{HeaderValue, Request, Response, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;

use self::connect::Connector;
pub(crate) use self::kept::Keep;
use self::kept::Kept;

/// Why there is no answer. Never what was asked: it holds credentials.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unanswered {
    Url,
    Tls,
    Connection,
    Answer,
    Time,
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Url => "the URL cannot be asked",
            Self::Tls => "the certificates that are trusted here cannot be read",
            Self::Connection => "no connection",
            Self::Answer => "the answer was broken or too large",
            Self::Time => "no answer in time",
        })
    }
}

impl std::error::Error for Unanswered {}

/// What an answer may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// How long everything may take, from connecting to the last byte.
    pub(crate) within: Duration,
    /// How many bytes the answer's body may have.
    pub(crate) bytes_max: usize,
}

/// Sends requests. Clones share their connections.
#[derive(Clone, Debug)]
pub(crate) struct Exchanges {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    connector: Connector,
    kept: Kept,
}

/// Whom a connection goes to.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Peer {
    is_tls: bool,
    authority: Authority,
}

impl Peer {
    fn of(url: &Uri) -> Option<Self> {
        let is_tls = url.scheme() == Some(&Scheme::HTTPS);
        Some(Self { is_tls, authority: url.authority()?.clone() })
    }
}

impl Exchanges {
    pub(crate) fn new(keep: Keep) -> Self {
        Self { shared: Arc::new(Shared { connector: Connector::default(), kept: Kept::new(keep) }) }
    }

    /// Sends a request to the URL that it is for, and reads the answer.
    pub(crate) async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
        bounds: Bounds,
    ) -> Result<Response<Bytes>, Unanswered> {
        let peer = Peer::of(request.uri()).ok_or(Unanswered::Url)?;
        let host = HeaderValue::from_str(peer.authority.as_str()).map_err(|_| Unanswered::Url)?;
        request.headers_mut().insert(HOST, host);
        let path = request.uri().path_and_query().cloned();
        *request.uri_mut() = path.map_or_else(|| Uri::from_static("/"), Uri::from);
        let exchange = self.shared.exchange(peer, request, bounds.bytes_max);
        tokio::time::timeout(bounds.within, exchange).await.map_err(|_| Unanswered::Time)?
    }
}

impl Shared {
    async fn exchange(
        &self,
        peer: Peer,
        mut request: Request<Full<Bytes>>,
        bytes_max: usize,
    ) -> Result<Response<Bytes>, Unanswered> {
        while let Some(mut sender) = self.kept.take(&peer) {
            if sender.ready().await.is_err() {
                continue;
            }
            let again = request.method().is_safe().then(|| request.clone());
            match sender.try_send_request(request).await {
                Ok(response) => return self.read(peer, sender, response, bytes_max).await,
                Err(mut error) => {
                    // The others were opened to the same process, which may have ended.
                    self.kept.forget(&peer);
                    request = error.take_message().or(again).ok_or(Unanswered::Answer)?;
                }
            }
        }
        let mut sender = self.connector.connect(&peer).await?;
        let response = sender.send_request(request).await.map_err(|_| Unanswered::Answer)?;
        self.read(peer, sender, response, bytes_max).await
    }

    async fn read(
        &self,
        peer: Peer,
        sender: SendRequest<Full<Bytes>>,
        response: Response<Incoming>,
        bytes_max: usize,
    ) -> Result<Response<Bytes>, Unanswered> {
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, bytes_max).collect().await.map_err(|_| Unanswered::Answer)?;
        self.kept.keep(peer, sender);
        Ok(Response::from_parts(parts, body.to_bytes()))
    }
}

#[cfg(test)]
mod tests;
