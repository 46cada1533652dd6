//! [`HttpClient`]: the requests of this process itself, each with one complete response: callouts to `reconcile` and
//! `authorise` URLs, spans for a collector, and the commands' requests to the admin API of a running sidecar. Requests
//! of clients are forwarded by `hapax-proxy`, with a pool of its own.
//!
//! Idle connections are pooled. A request is sent again on another connection in two cases only: nothing of it was sent,
//! or its method is safe and the pooled connection broke before the response.

mod connector;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::Connect;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use self::connector::{HttpConnector, HttpsConnector, ReuseMark, http_connector, https_connector};

/// Why there is no response. It never contains the request, which may hold credentials.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum RequestError {
    #[error("the URL is not a valid HTTP URL")]
    Url,
    #[error("the trusted certificates cannot be read")]
    Tls,
    #[error("no connection")]
    Connection,
    #[error("the response is incomplete or too large")]
    Response,
    #[error("no response in time")]
    Timeout,
}

/// The limits of one request and its response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestLimits {
    /// From connecting to the last byte of the response.
    pub(crate) timeout: Duration,
    /// The largest response body.
    pub(crate) body_bytes_max: usize,
}

/// The limits of the connection pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolOptions {
    /// The most idle connections to each server.
    pub(crate) idle_max: usize,
    /// How long an idle connection is kept.
    pub(crate) idle_timeout: Duration,
}

/// hyper's client with its connections.
type PooledClient<C> = Client<C, Full<Bytes>>;

/// Sends requests. Clones share a connection pool.
#[derive(Clone, Debug)]
pub(crate) struct HttpClient {
    pool: PoolOptions,
    http: PooledClient<HttpConnector>,
    /// Made for the first request over TLS: plain HTTP needs no trusted certificates. None if they cannot be read.
    https: Arc<OnceLock<Option<PooledClient<HttpsConnector>>>>,
}

impl HttpClient {
    pub(crate) fn new(pool: PoolOptions) -> Self {
        Self { pool, http: pool.client(http_connector()), https: Arc::default() }
    }

    /// Sends a request to its URL and reads the response.
    pub(crate) async fn send(
        &self,
        request: Request<Full<Bytes>>,
        limits: RequestLimits,
    ) -> Result<Response<Bytes>, RequestError> {
        let exchange = async {
            match request.uri().scheme_str() {
                Some("http") => exchange(&self.http, request, limits.body_bytes_max).await,
                Some("https") => exchange(self.https()?, request, limits.body_bytes_max).await,
                _ => Err(RequestError::Url),
            }
        };
        tokio::time::timeout(limits.timeout, exchange).await.map_err(|_| RequestError::Timeout)?
    }

    fn https(&self) -> Result<&PooledClient<HttpsConnector>, RequestError> {
        let client = self.https.get_or_init(|| match https_connector() {
            Ok(connector) => Some(self.pool.client(connector)),
            Err(error) => {
                tracing::error!(%error, "cannot set up TLS");
                None
            }
        });
        client.as_ref().ok_or(RequestError::Tls)
    }
}

impl PoolOptions {
    fn client<C: Connect + Clone>(self, connector: C) -> PooledClient<C> {
        Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(self.idle_timeout)
            .pool_max_idle_per_host(if self.idle_timeout.is_zero() { 0 } else { self.idle_max })
            .build(connector)
    }
}

async fn exchange<C: Connect + Clone + Send + Sync + 'static>(
    client: &PooledClient<C>,
    mut request: Request<Full<Bytes>>,
    body_bytes_max: usize,
) -> Result<Response<Bytes>, RequestError> {
    loop {
        let retry = request.method().is_safe().then(|| request.clone());
        match client.request(request).await {
            Ok(mut response) => {
                if let Some(mark) = response.extensions_mut().remove::<ReuseMark>() {
                    mark.set();
                }
                let (parts, body) = response.into_parts();
                let body = Limited::new(body, body_bytes_max).collect().await;
                let body = body.map_err(|_| RequestError::Response)?;
                return Ok(Response::from_parts(parts, body.to_bytes()));
            }
            Err(error) if error.is_connect() => {
                tracing::debug!(?error, "cannot connect");
                return Err(RequestError::Connection);
            }
            // Each such error removes a connection from the pool, so the loop ends.
            Err(error) => {
                request = retry.filter(|_| ReuseMark::is_set_in(&error)).ok_or(RequestError::Response)?;
            }
        }
    }
}

#[cfg(test)]
mod tests;
