//! A client's connection: TLS, the version of HTTP, and its requests until it ends.

mod detect;
mod frame_parts;
mod paced_body;
mod response_body;

use std::convert::Infallible;
use std::error::Error;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, ready};

use bytes::Bytes;
use http::header::HOST;
use http::{HeaderValue, Method, Request, Response, StatusCode, Version};
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Duration, interval, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tower_service::Service;

use self::detect::DetectedVersion;
use self::response_body::OutboundBody;
use crate::client_io::{ClientIo, ConnectionState, RequestTracker, Timeouts};
use crate::fields::{ClientInfo, REQUEST_ID, Security};
use crate::forward::ProtocolSwitch;
use crate::head::{Http1Inspector, is_host};
use crate::http2_frames::FrameTracker;
use crate::listener::ListenerSettings;
use crate::request_body::{BodyPace, ClientBody, SHUTDOWN_GRACE};
use crate::request_slots::{RequestSlot, RequestSlots};
use crate::response_budget::ResponseBudget;
use crate::tls::negotiated_http2;
use crate::workers::{StreamExecutor, Workers, current_stream};

/// Shared by all connections of a listener.
pub(crate) struct ConnectionServer<S> {
    service: S,
    settings: ListenerSettings,
    budget: Arc<ResponseBudget>,
    http1: http1::Builder,
    http2: http2::Builder<StreamExecutor>,
}

/// Shared by the requests of one connection. It has its own clone of the service: cloning a shared one for every request
/// would contend for its reference count on all cores. HTTP/2 streams lock it to call it, so `poll_ready` must not wait.
struct ConnectionContext<S> {
    server: Arc<ConnectionServer<S>>,
    service: Mutex<S>,
    client: ClientInfo,
    state: Arc<ConnectionState>,
    slots: RequestSlots,
    /// Ends tunnels, which have no last request.
    shutdown: CancellationToken,
}

impl<S> ConnectionServer<S> {
    pub(crate) fn new(settings: ListenerSettings, service: S, workers: Workers) -> Self {
        let options = &settings.options;
        let mut http1 = http1::Builder::new();
        // The timeouts are `ClientIo`'s: hyper's own would count the time that a request is served.
        http1.header_read_timeout(None).max_headers(options.head_fields_max);
        let mut http2 = http2::Builder::new(StreamExecutor(workers));
        http2
            .timer(TokioTimer::new())
            .max_concurrent_streams(options.streams_max)
            .max_header_list_size(u32::try_from(options.head_bytes_max).unwrap_or(u32::MAX))
            .keep_alive_interval(options.keep_alive)
            .keep_alive_timeout(options.head);
        let budget = ResponseBudget::new(options.response_bytes_max);
        Self { service, settings, budget, http1, http2 }
    }

    fn timeouts(&self) -> Timeouts {
        let options = &self.settings.options;
        Timeouts { head: options.head, keep_alive: options.keep_alive, write_idle: options.write_idle }
    }
}

impl<S, B> ConnectionServer<S>
where
    S: Service<Request<ClientBody>, Response = Response<B>, Error = Infallible>
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    /// Serves a connection to its end. Errors are the client's, and logged at debug level only.
    pub(crate) async fn serve(
        self: Arc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
        shutdown: CancellationToken,
    ) {
        let state = Arc::new(ConnectionState::with_shutdown(shutdown.clone()));
        match &self.settings.certificate {
            None => self.serve_detected(stream, state, peer, Security::Plain, shutdown).await,
            // Boxed: a plain connection does not take the memory of a TLS connection.
            Some(certificate) => {
                let acceptor = TlsAcceptor::from(certificate.current());
                Box::pin(self.serve_tls(acceptor, stream, state, peer, shutdown)).await;
            }
        }
    }

    async fn serve_tls(
        self: &Arc<Self>,
        acceptor: TlsAcceptor,
        stream: TcpStream,
        state: Arc<ConnectionState>,
        peer: SocketAddr,
        shutdown: CancellationToken,
    ) {
        let handshake = timeout(self.settings.options.first_byte, acceptor.accept(stream));
        tokio::select! {
            biased;
            () = shutdown.cancelled() => {}
            done = handshake => match done {
                Ok(Ok(stream)) if negotiated_http2(stream.get_ref().1.alpn_protocol()) => {
                    let context = self.context(state, peer, Security::Tls, &shutdown);
                    Box::pin(self.serve_http2(stream, Bytes::new(), context, shutdown)).await;
                }
                Ok(Ok(stream)) => {
                    Box::pin(self.serve_detected(stream, state, peer, Security::Tls, shutdown)).await;
                }
                Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
                Err(_) => tracing::debug!("TLS handshake timed out"),
            },
        }
    }

    fn context(
        self: &Arc<Self>,
        state: Arc<ConnectionState>,
        peer: SocketAddr,
        security: Security,
        shutdown: &CancellationToken,
    ) -> Arc<ConnectionContext<S>> {
        let options = &self.settings.options;
        state.set_budget(&self.budget);
        Arc::new(ConnectionContext {
            server: self.clone(),
            service: Mutex::new(self.service.clone()),
            client: ClientInfo::new(peer.ip(), security, options, self.settings.reserved),
            state,
            slots: RequestSlots::new(options.streams_max),
            shutdown: shutdown.clone(),
        })
    }

    /// Detects the version of HTTP and serves it.
    async fn serve_detected<I>(
        self: &Arc<Self>,
        mut io: I,
        state: Arc<ConnectionState>,
        peer: SocketAddr,
        security: Security,
        shutdown: CancellationToken,
    ) where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let detected = tokio::select! {
            biased;
            () = shutdown.cancelled() => return,
            detected = self.detect(&mut io) => detected,
        };
        let context = self.context(state, peer, security, &shutdown);
        match detected {
            // Boxed: a connection takes the memory of one version, not of the larger one.
            Ok(DetectedVersion::Http1(bytes)) => {
                Box::pin(self.serve_http1(io, bytes, context, shutdown)).await;
            }
            Ok(DetectedVersion::Http2(bytes)) => {
                Box::pin(self.serve_http2(io, bytes, context, shutdown)).await;
            }
            Err(error) => tracing::debug!(%error, "a connection ended before its first request"),
        }
    }

    async fn detect(&self, io: &mut (impl AsyncRead + Unpin)) -> io::Result<DetectedVersion> {
        let options = &self.settings.options;
        match timeout(options.first_byte, detect::detect_version(io, options.http2)).await?? {
            DetectedVersion::Http1(begun) => {
                let head = detect::read_first_head(io, begun, options.head_bytes_max);
                Ok(DetectedVersion::Http1(timeout(options.head, head).await??))
            }
            http2 @ DetectedVersion::Http2(_) => Ok(http2),
        }
    }

    async fn serve_http1<I>(
        self: &Arc<Self>,
        io: I,
        prefix: Bytes,
        context: Arc<ConnectionContext<S>>,
        shutdown: CancellationToken,
    ) where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let tracker = RequestTracker::Http1(Http1Inspector::new(self.settings.options.head_bytes_max));
        let io = ClientIo::new(io, prefix, tracker, context.state.clone(), self.timeouts());
        let state = context.state.clone();
        let service = service_fn(move |request| context.clone().handle(request));
        let mut connection = pin!(self.http1.serve_connection(TokioIo::new(io), service).with_upgrades());
        state
            .run_until_aborted(async {
                let ended = tokio::select! {
                    biased;
                    ended = connection.as_mut() => ended,
                    () = shutdown.cancelled() => {
                        connection.as_mut().graceful_shutdown();
                        connection.await
                    }
                };
                log_end(ended);
            })
            .await;
    }

    async fn serve_http2<I>(
        self: &Arc<Self>,
        io: I,
        prefix: Bytes,
        context: Arc<ConnectionContext<S>>,
        shutdown: CancellationToken,
    ) where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let options = &self.settings.options;
        let tracker = RequestTracker::Http2(FrameTracker::new());
        let io = ClientIo::new(io, prefix, tracker, context.state.clone(), self.timeouts());
        let state = context.state.clone();
        let service = service_fn(move |request| context.clone().handle(request));
        let mut connection = pin!(self.http2.serve_connection(TokioIo::new(io), service));
        state
            .run_until_aborted(async {
                let time_left = tokio::select! {
                    biased;
                    ended = connection.as_mut() => return log_end(ended),
                    () = shutdown.cancelled() => None,
                    () = idle_for(&state, options.keep_alive) => Some(options.keep_alive),
                    // A client that stalls one response gets no new ones, and the others have as long to be read.
                    () = state.response_abandoned() => Some(options.write_idle),
                };
                connection.as_mut().graceful_shutdown();
                match time_left {
                    // Requests in flight may finish; how long the process waits for them is not limited here. A client
                    // that does not even answer the shutdown's ping is given the grace period only.
                    None => tokio::select! {
                        ended = connection => log_end(ended),
                        () = idle_for(&state, SHUTDOWN_GRACE) => {}
                    },
                    Some(time_left) => drop(timeout(time_left, connection).await),
                }
            })
            .await;
    }
}

impl<S, B> ConnectionContext<S>
where
    S: Service<Request<ClientBody>, Response = Response<B>, Error = Infallible> + Send + Sync + 'static,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    #[expect(clippy::manual_async_fn, reason = "the future of an `async fn` stores its arguments twice")]
    fn handle(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> impl Future<Output = Result<Response<OutboundBody<B>>, Infallible>> + Send {
        async move {
            let (mut parts, body) = request.into_parts();
            let ListenerSettings { options, responses, .. } = &self.server.settings;
            if parts.method == Method::CONNECT {
                return Ok(close_after(responses.connect()));
            }
            let is_http2 = parts.version == Version::HTTP_2;
            // For HTTP/1, the parser and the inspector have checked both.
            if is_http2 && parts.headers.len() > options.head_fields_max {
                return Ok(refuse(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE));
            }
            if is_http2 && !validate_http2_head(&mut parts) {
                return Ok(refuse(StatusCode::BAD_REQUEST));
            }
            if is_http2 {
                let Some(slot) = self.slots.acquire().await else {
                    return Ok(responses.too_many_requests(&parts.headers).map(OutboundBody::fixed));
                };
                parts.extensions.insert(slot);
            }
            let open = self.state.begin_request();
            let id = self.client.rewrite_request(&mut parts.headers, parts.version);
            let pace = BodyPace { idle: options.body_idle, rate_min: options.body_rate_min };
            let mut request = Some((parts, body));
            let response = poll_fn(|cx| {
                let mut service = self.service.lock();
                let Ok(()) = ready!(service.poll_ready(cx));
                let (parts, body) = request.take().expect("a request is taken once");
                let body = ClientBody::new(body, pace, self.state.clone());
                Poll::Ready(service.call(Request::from_parts(parts, body)))
            });
            let Ok(mut response) = response.await.await;
            // Released before the client sees the response and opens its next stream.
            drop(response.extensions_mut().remove::<RequestSlot>());
            if let Some(switch) = response.extensions_mut().remove::<ProtocolSwitch>() {
                if self.state.has_early_bytes() {
                    // Bytes before the 101 belong to no protocol.
                    self.state.record_response(StatusCode::BAD_REQUEST);
                    return Ok(refuse(StatusCode::BAD_REQUEST));
                }
                let shutdown = self.shutdown.clone();
                tokio::spawn(async move { shutdown.run_until_cancelled(switch.run()).await });
            }
            self.state.record_response(response.status());
            response.headers_mut().entry(REQUEST_ID).or_insert(id);
            let part_timeout = options.write_idle;
            Ok(response.map(|body| {
                if is_http2 {
                    OutboundBody::paced(body, open, current_stream(), part_timeout)
                } else {
                    OutboundBody::direct(body, open)
                }
            }))
        }
    }
}

/// Resolves once no request was open for this long.
async fn idle_for(state: &ConnectionState, span: Duration) {
    let mut ticks = interval(span.max(Duration::from_millis(1)));
    ticks.tick().await;
    let mut begun = state.requests_begun();
    loop {
        ticks.tick().await;
        let now = state.requests_begun();
        if now == begun && state.is_idle() {
            return;
        }
        begun = now;
    }
}

fn log_end(ended: Result<(), hyper::Error>) {
    if let Err(error) = ended {
        tracing::debug!(%error, "a client's connection ended with an error");
    }
}

/// A response without a body, after which an HTTP/1 connection closes.
fn refuse<B>(status: StatusCode) -> Response<OutboundBody<B>> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = status;
    close_after(response)
}

/// Makes this the last response of an HTTP/1 connection.
fn close_after<B>(response: Response<Bytes>) -> Response<OutboundBody<B>> {
    let mut response = response.map(OutboundBody::fixed);
    response.headers_mut().insert(http::header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Whether an HTTP/2 request can be translated to HTTP/1.1 unambiguously. Sets `Host` to its authority.
fn validate_http2_head(parts: &mut http::request::Parts) -> bool {
    let path = parts.uri.path();
    if !(path.starts_with('/') || (path == "*" && parts.method == Method::OPTIONS)) {
        return false;
    }
    let target = parts.uri.path_and_query().map_or("", |target| target.as_str());
    if !target.bytes().all(|byte| byte.is_ascii_graphic()) {
        return false;
    }
    // Servers that treat `_` as `-` would take the length of the body from these.
    if ["content_length", "transfer_encoding"].iter().any(|name| parts.headers.contains_key(*name)) {
        return false;
    }
    let mut hosts = parts.headers.get_all(HOST).iter();
    let (host, more) = (hosts.next(), hosts.next());
    let lengths = parts.headers.get_all(http::header::CONTENT_LENGTH).iter().count();
    if more.is_some() || lengths > 1 {
        return false;
    }
    match (parts.uri.authority(), host) {
        (Some(authority), host) => {
            let authority = authority.as_str().as_bytes();
            if !is_host(authority)
                || host.is_some_and(|host| !host.as_bytes().eq_ignore_ascii_case(authority))
            {
                return false;
            }
            let Ok(value) = HeaderValue::from_bytes(authority) else { return false };
            parts.headers.insert(HOST, value);
            true
        }
        (None, Some(host)) => is_host(host.as_bytes()),
        (None, None) => false,
    }
}

#[cfg(test)]
mod tests;
