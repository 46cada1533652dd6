//! [`Forward`]: sends a request to an upstream, at most once.
//!
//! Its errors distinguish a request of which nothing was sent from one that may have been executed.

mod body;
mod tunnel;

use std::error::Error;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{HeaderValue, Request, Response, StatusCode, Uri};
use http_body::Body;
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;

pub use self::body::{ForwardBody, ForwardBodyError};
pub(crate) use self::tunnel::ProtocolSwitch;
use crate::error::{BoxError, SetupError};
use crate::fields::{self, Upgrade};
use crate::options::UpstreamOptions;
use crate::request_body::ClientBodyError;
use crate::request_slots::RequestSlot;
use crate::upstream::{
    OutgoingBody, RequiredVersion, ResponseConnection, SendError, UpstreamPool, UpstreamResponse,
};

/// Sends requests to the addresses of an upstream, over pooled connections. Clones share the pool.
#[derive(Clone, Debug)]
pub struct Forward {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    pool: UpstreamPool,
    body_idle: Duration,
    tunnel_idle: Duration,
}

/// Why a request has no response.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ForwardError {
    /// No address could be reached. Nothing was sent.
    #[error("no address of the upstream took the request; nothing was sent")]
    NotSent,
    /// All connections stayed in use. Nothing was sent.
    #[error("every connection to the upstream is in use; nothing was sent")]
    NoConnection,
    /// The request was sent, and the response did not begin in time.
    #[error("the upstream did not respond in time")]
    TimedOut,
    /// The upstream has the beginning of the request, whose body came too slowly.
    #[error("the client sent the body too slowly; the upstream has the beginning of it")]
    BodyTooSlow,
    /// The upstream has the beginning of the request, whose body broke off.
    #[error("the client's body broke off; the upstream has the beginning of it")]
    BodyIncomplete,
    /// The response is not HTTP.
    #[error("the upstream's response is malformed")]
    MalformedResponse(#[source] BoxError),
    /// The end of the response is ambiguous, or it is a 101 that was not requested.
    #[error("the upstream's response is ambiguous")]
    AmbiguousResponse,
    /// The connection broke off before the response.
    #[error("the connection to the upstream broke off")]
    ConnectionLost(#[source] BoxError),
}

impl ForwardError {
    /// Whether it is certain that nothing was sent. Otherwise the request may have been executed.
    pub fn is_unsent(&self) -> bool {
        matches!(self, Self::NotSent | Self::NoConnection)
    }

    /// The status that tells a client of it.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::NotSent
            | Self::MalformedResponse(_)
            | Self::AmbiguousResponse
            | Self::ConnectionLost(_) => StatusCode::BAD_GATEWAY,
            Self::NoConnection => StatusCode::SERVICE_UNAVAILABLE,
            Self::TimedOut => StatusCode::GATEWAY_TIMEOUT,
            Self::BodyTooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::BodyIncomplete => StatusCode::BAD_REQUEST,
        }
    }
}

impl Forward {
    /// Forwards to these addresses, in turn. Inside of a runtime it also checks their health.
    ///
    /// # Errors
    /// [`SetupError`] when there is no address, or one cannot be used.
    pub fn new(addresses: &[Uri], options: &UpstreamOptions) -> Result<Self, SetupError> {
        let pool = UpstreamPool::new(addresses, options)?;
        let (body_idle, tunnel_idle) = (options.body_idle, options.tunnel_idle);
        Ok(Self { shared: Arc::new(Shared { pool, body_idle, tunnel_idle }) })
    }

    /// Sends a request, of which hop-by-hop fields are removed. `sending_to` is called with the address of every
    /// upstream that is tried.
    ///
    /// A request with hyper's `OnUpgrade` in its extensions may switch protocols. Remove the extension to prevent it.
    ///
    /// # Errors
    /// [`ForwardError`] when there is no response. The request is sent again only while
    /// [nothing of it was sent](ForwardError::is_unsent).
    #[expect(clippy::manual_async_fn, reason = "the future of an `async fn` stores its arguments twice")]
    pub fn send<B>(
        &self,
        request: Request<B>,
        sending_to: impl FnMut(&Arc<str>) + Send,
    ) -> impl Future<Output = Result<Response<ForwardBody>, ForwardError>> + Send
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        async move {
            let shared = &*self.shared;
            let (mut parts, body) = request.into_parts();
            let slot = parts.extensions.remove::<RequestSlot>();
            let client = parts.extensions.remove::<OnUpgrade>();
            let client = client.filter(|_| fields::is_upgrade(&parts.headers));
            let upgrade = if client.is_some() && shared.pool.supports_upgrades() {
                Upgrade::Keep
            } else {
                Upgrade::Remove
            };
            let version =
                if upgrade == Upgrade::Keep { RequiredVersion::Http1 } else { RequiredVersion::Any };
            let is_empty = body.is_end_stream() && fields::states_empty_body(&parts.method, &parts.headers);
            fields::strip_request(&mut parts.headers, parts.version, upgrade);
            if is_empty {
                parts.headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
            }
            parts.extensions.clear();

            // Boxed: it is passed on until it is sent, and sometimes handed back.
            let request = Box::new(Request::from_parts(parts, OutgoingBody::new(body)));
            let sent = shared.pool.send(request, version, sending_to).await.map_err(forward_error)?;
            let UpstreamResponse { response, connection } = sent;
            let mut response = shared.accept(response, connection, client, upgrade)?;
            // It counts as running until the service has recorded the response.
            if let Some(slot) = slot {
                response.extensions_mut().insert(slot);
            }
            Ok(response)
        }
    }
}

impl Shared {
    /// Checks the head of a response and prepares it for the client.
    fn accept(
        &self,
        mut response: Response<Incoming>,
        connection: ResponseConnection,
        client: Option<OnUpgrade>,
        upgrade: Upgrade,
    ) -> Result<Response<ForwardBody>, ForwardError> {
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            let (Some(client), Upgrade::Keep, ResponseConnection::Http1(connection, _)) =
                (client, upgrade, connection)
            else {
                // The request did not ask for it, so it is unknown what the upstream made of it.
                return Err(ForwardError::AmbiguousResponse);
            };
            response.extensions_mut().insert(ProtocolSwitch::new(client, connection, self.tunnel_idle));
            fields::strip_response(response.headers_mut(), Upgrade::Keep);
            return Ok(response.map(|_| ForwardBody::from(Bytes::new())));
        }
        if !fields::is_framing_unambiguous(response.headers()) {
            return Err(ForwardError::AmbiguousResponse);
        }
        fields::strip_response(response.headers_mut(), Upgrade::Remove);
        Ok(response.map(|body| match connection {
            ResponseConnection::Http1(connection, address) => {
                ForwardBody::http1(body, connection, address, self.body_idle)
            }
            ResponseConnection::Http2 => ForwardBody::http2(body, self.body_idle),
        }))
    }
}

fn forward_error(error: SendError) -> ForwardError {
    match error {
        SendError::NotSent => ForwardError::NotSent,
        SendError::NoConnection => ForwardError::NoConnection,
        SendError::TimedOut => ForwardError::TimedOut,
        SendError::Lost(error) => {
            tracing::debug!(%error, "the exchange with the upstream broke off");
            match error.source().and_then(|source| source.downcast_ref::<ClientBodyError>()) {
                Some(ClientBodyError::TooSlow) => ForwardError::BodyTooSlow,
                Some(ClientBodyError::Incomplete(_) | ClientBodyError::ShuttingDown) => {
                    ForwardError::BodyIncomplete
                }
                None if error.is_parse() => ForwardError::MalformedResponse(error.into()),
                None => ForwardError::ConnectionLost(error.into()),
            }
        }
    }
}
