//! One client's connection: TLS, which version of HTTP, and its requests until it ends.

mod answered;
mod offered;
mod pieces;
mod sniff;

use std::convert::Infallible;
use std::error::Error;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, ready};

use bytes::Bytes;
use hapax::http::Code;
use http::header::HOST;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version};
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

use self::answered::Answered;
use self::sniff::Sniffed;
use super::fields::{Client, REQUEST_ID, Security};
use super::forward::{Switch, is_grpc};
use super::frames::Frames;
use super::head::{Inspector, is_host};
use super::options::Transport;
use super::received::{PARTING, Patience, Received};
use super::runs::{Running, Runs};
use super::socket::{Guarded, Progress, Times, Watched};
use super::tls::{Certificate, agreed_on_http2};
use super::untaken::Untaken;
use super::workers::{Workers, this_stream};
use crate::problem;

/// What all connections of a listener share.
pub(super) struct Serving<S> {
    service: S,
    transport: Transport,
    untaken: Arc<Untaken>,
    certificate: Option<Arc<Certificate>>,
    http1: http1::Builder,
    http2: http2::Builder<Workers>,
}

/// What the requests of one connection share. It has a service of its own: one that is cloned for every request counts
/// every request in and out of what all of them share, and the cores would wait for each other. The streams of HTTP/2
/// take turns to ask it, so it must be one that does not keep anybody waiting until it is ready.
struct Caller<S> {
    serving: Arc<Serving<S>>,
    service: Mutex<S>,
    client: Client,
    progress: Arc<Progress>,
    runs: Runs,
    /// Ends what is no longer HTTP, and so has no request that could be the last.
    stop: CancellationToken,
}

impl<S> Serving<S> {
    pub(super) fn new(
        transport: &Transport,
        certificate: Option<Arc<Certificate>>,
        service: S,
        workers: Workers,
    ) -> Self {
        let mut http1 = http1::Builder::new();
        // Deadlines are the socket's: hyper's own would count the time that a request is being answered.
        http1.header_read_timeout(None).max_headers(transport.head_fields_max);
        let mut http2 = http2::Builder::new(workers);
        http2
            .timer(TokioTimer::new())
            .max_concurrent_streams(transport.streams_max)
            .max_header_list_size(u32::try_from(transport.head_bytes_max).unwrap_or(u32::MAX))
            .keep_alive_interval(transport.keep_alive.0)
            .keep_alive_timeout(transport.head.0);
        let untaken = Untaken::new(transport.answer_bytes_in_all_max);
        Self { service, transport: transport.clone(), untaken, certificate, http1, http2 }
    }

    fn times(&self) -> Times {
        Times {
            head: self.transport.head.0,
            keep_alive: self.transport.keep_alive.0,
            write_idle: self.transport.write_idle.0,
        }
    }
}

impl<S, B> Serving<S>
where
    S: Service<Request<Received>, Response = Response<B>, Error = Infallible> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    /// Serves a connection to its end. What goes wrong on the way is the client's affair, and logged for people who
    /// look for it.
    pub(super) async fn serve(self: Arc<Self>, stream: TcpStream, peer: SocketAddr, stop: CancellationToken) {
        let progress = Arc::new(Progress::until(stop.clone()));
        match &self.certificate {
            None => self.speak(stream, progress, peer, Security::Plain, stop).await,
            // In a box: a connection without TLS does not take the memory of one that has it.
            Some(certificate) => {
                let acceptor = TlsAcceptor::from(certificate.current());
                Box::pin(self.serve_tls(acceptor, stream, progress, peer, stop)).await;
            }
        }
    }

    async fn serve_tls(
        self: &Arc<Self>,
        acceptor: TlsAcceptor,
        stream: TcpStream,
        progress: Arc<Progress>,
        peer: SocketAddr,
        stop: CancellationToken,
    ) {
        let handshake = timeout(self.transport.first_byte.0, acceptor.accept(stream));
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            done = handshake => match done {
                Ok(Ok(stream)) if agreed_on_http2(stream.get_ref().1.alpn_protocol()) => {
                    let caller = self.caller(progress, peer, Security::Tls, &stop);
                    Box::pin(self.http2(stream, Bytes::new(), caller, stop)).await;
                }
                Ok(Ok(stream)) => Box::pin(self.speak(stream, progress, peer, Security::Tls, stop)).await,
                Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
                Err(_) => tracing::debug!("a TLS handshake took too long"),
            },
        }
    }

    fn caller(
        self: &Arc<Self>,
        progress: Arc<Progress>,
        peer: SocketAddr,
        security: Security,
        stop: &CancellationToken,
    ) -> Arc<Caller<S>> {
        let Transport { forwarded, trust_forwarded, .. } = self.transport;
        progress.count_in(&self.untaken);
        Arc::new(Caller {
            serving: self.clone(),
            service: Mutex::new(self.service.clone()),
            client: Client::new(peer.ip(), security, forwarded, trust_forwarded),
            progress,
            runs: Runs::new(self.transport.streams_max),
            stop: stop.clone(),
        })
    }

    /// Finds out by the first bytes which version is spoken, and speaks it.
    async fn speak<I>(
        self: &Arc<Self>,
        mut io: I,
        progress: Arc<Progress>,
        peer: SocketAddr,
        security: Security,
        stop: CancellationToken,
    ) where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let begun = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            begun = self.begin(&mut io) => begun,
        };
        let caller = self.caller(progress, peer, security, &stop);
        match begun {
            // In boxes of their own: a connection takes the memory of what it speaks, not of what it might have spoken.
            Ok(Sniffed::Http1(bytes)) => Box::pin(self.http1(io, bytes, caller, stop)).await,
            Ok(Sniffed::Http2(bytes)) => Box::pin(self.http2(io, bytes, caller, stop)).await,
            Err(error) => tracing::debug!(%error, "a connection ended before its first request"),
        }
    }

    async fn begin(&self, io: &mut (impl AsyncRead + Unpin)) -> io::Result<Sniffed> {
        let Transport { first_byte, head, head_bytes_max, http2, .. } = &self.transport;
        match timeout(first_byte.0, sniff::first_bytes(io, *http2)).await?? {
            Sniffed::Http1(begun) => {
                let head = timeout(head.0, sniff::first_head(io, begun, *head_bytes_max)).await??;
                Ok(Sniffed::Http1(head))
            }
            http2 @ Sniffed::Http2(_) => Ok(http2),
        }
    }

    async fn http1<I>(
        self: &Arc<Self>,
        io: I,
        sniffed: Bytes,
        caller: Arc<Caller<S>>,
        stop: CancellationToken,
    ) where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let inspector = Inspector::new(self.transport.head_bytes_max);
        let io = Guarded::new(io, sniffed, Watched::Http1(inspector), caller.progress.clone(), self.times());
        let progress = caller.progress.clone();
        let service = service_fn(move |request| caller.clone().answer(request));
        let mut connection = pin!(self.http1.serve_connection(TokioIo::new(io), service).with_upgrades());
        progress
            .unless_cut_off(async {
                let ended = tokio::select! {
                    biased;
                    ended = connection.as_mut() => ended,
                    () = stop.cancelled() => {
                        connection.as_mut().graceful_shutdown();
                        connection.await
                    }
                };
                log_end(ended);
            })
            .await;
    }

    async fn http2<I>(
        self: &Arc<Self>,
        io: I,
        sniffed: Bytes,
        caller: Arc<Caller<S>>,
        stop: CancellationToken,
    ) where
        I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let io =
            Guarded::new(io, sniffed, Watched::Http2(Frames::new()), caller.progress.clone(), self.times());
        let progress = caller.progress.clone();
        let service = service_fn(move |request| caller.clone().answer(request));
        let mut connection = pin!(self.http2.serve_connection(TokioIo::new(io), service));
        progress
            .unless_cut_off(async {
                let ended = tokio::select! {
                    biased;
                    ended = connection.as_mut() => return log_end(ended),
                    () = stop.cancelled() => None,
                    () = unused(&progress, self.transport.keep_alive.0) => Some(self.transport.keep_alive.0),
                    // Whoever does not take one answer gets no new ones, and the others have as long to be taken.
                    () = progress.given_up() => Some(self.transport.write_idle.0),
                };
                connection.as_mut().graceful_shutdown();
                match ended {
                    // What began may finish; how long the process waits for it is not decided here. A client that
                    // answers nothing, not even that it knows of the end, is waited for no longer than that takes.
                    None => tokio::select! {
                        ended = connection => log_end(ended),
                        () = unused(&progress, PARTING) => {}
                    },
                    Some(patience) => drop(timeout(patience, connection).await),
                }
            })
            .await;
    }
}

impl<S, B> Caller<S>
where
    S: Service<Request<Received>, Response = Response<B>, Error = Infallible> + Send + Sync + 'static,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    #[expect(clippy::manual_async_fn, reason = "an `async fn` has room for its arguments twice")]
    fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
    ) -> impl Future<Output = Result<Response<Answered<B>>, Infallible>> + Send {
        async move {
            let (mut parts, body) = request.into_parts();
            if parts.method == Method::CONNECT {
                return Ok(last(problem::TUNNEL_REFUSED.response()));
            }
            let is_http2 = parts.version == Version::HTTP_2;
            // Of HTTP/1, the parser and the inspector have seen to both.
            if is_http2 && parts.headers.len() > self.serving.transport.head_fields_max {
                return Ok(refused(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE));
            }
            if is_http2 && !is_sound(&mut parts) {
                return Ok(refused(StatusCode::BAD_REQUEST));
            }
            let transport = &self.serving.transport;
            if is_http2 {
                let Some(running) = self.runs.begin().await else {
                    return Ok(too_many(&parts.headers));
                };
                parts.extensions.insert(running);
            }
            let open = self.progress.begin();
            let id = self.client.admit(&mut parts.headers, parts.version);
            let patience = Patience { idle: transport.body_idle.0, rate_min: transport.body_rate_min };
            let mut request = Some((parts, body));
            let answer = poll_fn(|cx| {
                let mut service = self.service.lock();
                let Ok(()) = ready!(service.poll_ready(cx));
                let (parts, body) = request.take().expect("a request is taken once");
                let body = Received::new(body, patience, self.progress.clone());
                Poll::Ready(service.call(Request::from_parts(parts, body)))
            });
            let Ok(mut response) = answer.await.await;
            // Before the client knows of the answer, and opens its next stream.
            drop(response.extensions_mut().remove::<Running>());
            if let Some(switch) = response.extensions_mut().remove::<Switch>() {
                if self.progress.is_early() {
                    // Bytes that came before the agreement belong to nobody.
                    self.progress.answered(StatusCode::BAD_REQUEST);
                    return Ok(refused(StatusCode::BAD_REQUEST));
                }
                let stop = self.stop.clone();
                tokio::spawn(async move { stop.run_until_cancelled(switch.run()).await });
            }
            self.progress.answered(response.status());
            response.headers_mut().entry(REQUEST_ID).or_insert(id);
            Ok(response.map(|body| {
                if is_http2 {
                    Answered::offered(body, open, this_stream(), self.serving.transport.write_idle.0)
                } else {
                    Answered::new(body, open)
                }
            }))
        }
    }
}

/// Resolves once no request was open for this long.
async fn unused(progress: &Progress, span: Duration) {
    let mut ticks = interval(span.max(Duration::from_millis(1)));
    ticks.tick().await;
    let mut begun = progress.begun();
    loop {
        ticks.tick().await;
        let now = progress.begun();
        if now == begun && progress.is_idle() {
            return;
        }
        begun = now;
    }
}

fn log_end(ended: Result<(), hyper::Error>) {
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended with an error");
    }
}

/// A refusal where as many requests of the connection run as it may have open.
fn too_many<B>(headers: &HeaderMap) -> Response<Answered<B>> {
    const DETAIL: &str = "as many requests of this connection as it may have open still run, some of them after they were reset";
    let response = if is_grpc(headers) {
        Code::RateLimited.grpc_response(DETAIL)
    } else {
        Code::RateLimited.response(None, DETAIL)
    };
    response.map(Answered::words)
}

/// A refusal of the connection's own, without a word.
fn refused<B>(status: StatusCode) -> Response<Answered<B>> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = status;
    last(response)
}

/// The last answer of its connection, where the version of HTTP has such a thing.
fn last<B>(response: Response<Bytes>) -> Response<Answered<B>> {
    let mut response = response.map(Answered::words);
    response.headers_mut().insert(http::header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Whether a request of HTTP/2 can be said in HTTP/1.1 without doubt. It gets the `Host` of its authority.
fn is_sound(parts: &mut http::request::Parts) -> bool {
    let path = parts.uri.path();
    if !(path.starts_with('/') || (path == "*" && parts.method == Method::OPTIONS)) {
        return false;
    }
    let target = parts.uri.path_and_query().map_or("", |target| target.as_str());
    if !target.bytes().all(|byte| byte.is_ascii_graphic()) {
        return false;
    }
    // To servers that do not tell `_` from `-`, these would say how long the body is.
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
