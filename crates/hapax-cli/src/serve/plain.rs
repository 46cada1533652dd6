//! The simplest listener, forwarding service and operators' listener that carry requests: one connection upstream for
//! each request, HTTP/1.1 only, no TLS.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hapax::Hapax;
use hapax::http::{Outcome, RequestBody};
use http::{HeaderValue, Request, Response, StatusCode, Uri, header};
use http_body::Body;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use metrics_exporter_prometheus::PrometheusHandle;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_service::Service;

use crate::config::sections::{AdminOptions, Tls, Transport, UpstreamOptions};
use crate::failure::{Code, Failure};

pub(super) type ForwardBody = BoxBody<Bytes, hyper::Error>;

/// Sends requests on to the first address.
#[derive(Clone, Debug)]
pub(super) struct Forward {
    address: Arc<str>,
}

impl Forward {
    pub(super) fn new(addresses: &[Uri], _options: &UpstreamOptions) -> Result<Self, Failure> {
        let authority = addresses.first().and_then(|uri| uri.authority());
        let address = authority.map(|authority| authority.as_str().into());
        address
            .map(|address| Self { address })
            .ok_or_else(|| Failure::new(Code::ConfigInvalid, "there is no upstream"))
    }
}

impl Service<Request<RequestBody<Incoming>>> for Forward {
    type Response = Response<ForwardBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody<Incoming>>) -> Self::Future {
        let address = self.address.clone();
        Box::pin(async move {
            let Ok(stream) = TcpStream::connect(&*address).await else {
                return Ok(failed("upstream-unavailable", Outcome::Release));
            };
            let Ok((mut sender, connection)) =
                hyper::client::conn::http1::handshake(TokioIo::new(stream)).await
            else {
                return Ok(failed("upstream-unavailable", Outcome::Release));
            };
            tokio::spawn(connection);
            Ok(match sender.send_request(request).await {
                Ok(response) => response.map(BodyExt::boxed),
                Err(_) => failed("uncertain", Outcome::Uncertain),
            })
        })
    }
}

fn failed(code: &str, outcome: Outcome) -> Response<ForwardBody> {
    let words = json!({ "type": format!("{}{code}", hapax::http::TYPE_BASE), "status": 502 }).to_string();
    let mut response = Response::new(Full::from(words).map_err(|never| match never {}).boxed());
    *response.status_mut() = StatusCode::BAD_GATEWAY;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    response.extensions_mut().insert(outcome);
    response
}

/// Bound, not yet serving.
#[derive(Debug)]
pub(super) struct Listener {
    listener: TcpListener,
    address: SocketAddr,
}

impl Listener {
    pub(super) async fn bind(
        address: SocketAddr,
        _transport: &Transport,
        _tls: Option<&Tls>,
    ) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| {
            Failure::new(Code::Failed, format!("cannot listen on {address}")).because(error)
        };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address })
    }

    pub(super) fn local_addr(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn reload_tls(&self) -> Result<(), Failure> {
        Ok(())
    }

    pub(super) async fn serve<S, F, B>(&self, current: F, stop: CancellationToken)
    where
        F: Fn() -> S + Clone + Send + Sync + 'static,
        S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Send + 'static,
        S::Future: Send + 'static,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: std::error::Error + Send + Sync + 'static,
    {
        let connections = TaskTracker::new();
        loop {
            let accepted = tokio::select! {
                () = stop.cancelled() => break,
                accepted = self.listener.accept() => accepted,
            };
            let Ok((stream, _)) = accepted else { continue };
            let (current, stop) = (current.clone(), stop.clone());
            connections.spawn(async move {
                let service = service_fn(move |request| current().call(request));
                let connection = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service);
                tokio::pin!(connection);
                tokio::select! {
                    _ = connection.as_mut() => return,
                    () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
                }
                let _ = connection.await;
            });
        }
        connections.close();
        connections.wait().await;
    }
}

/// What operators are shown.
#[derive(Clone)]
pub(super) struct Admin {
    pub(super) hapax: Hapax,
    pub(super) metrics: PrometheusHandle,
    pub(super) config: Arc<dyn Fn() -> Value + Send + Sync>,
    pub(super) ready: Arc<dyn Fn() -> bool + Send + Sync>,
    pub(super) data_dir: Option<PathBuf>,
    pub(super) options: AdminOptions,
}

impl Admin {
    pub(super) async fn bind(options: &AdminOptions) -> Result<Option<AdminListener>, Failure> {
        if options.listen == "off" {
            return Ok(None);
        }
        let address = options.listen.parse().map_err(|_| {
            Failure::new(Code::ConfigInvalid, format!("{:?} is no address for operators", options.listen))
        })?;
        let listener = Listener::bind(address, &Transport::default(), None).await?;
        Ok(Some(AdminListener { listener }))
    }

    async fn answer(self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
        let (status, words) = match request.uri().path() {
            "/healthz" => (StatusCode::OK, "ok\n".to_owned()),
            "/readyz" if (self.ready)() && self.hapax.store().health().await.is_ok() => {
                (StatusCode::OK, "ready\n".to_owned())
            }
            "/readyz" => (StatusCode::SERVICE_UNAVAILABLE, "not ready\n".to_owned()),
            "/metrics" => (StatusCode::OK, self.metrics.render()),
            "/api/v1/config" => (StatusCode::OK, (self.config)().to_string()),
            _ => (StatusCode::NOT_FOUND, format!("{} {:?}\n", self.options.listen, self.data_dir)),
        };
        let mut response = Response::new(words.into());
        *response.status_mut() = status;
        Ok(response)
    }
}

/// Bound, not yet serving.
#[derive(Debug)]
pub(super) struct AdminListener {
    listener: Listener,
}

impl AdminListener {
    pub(super) fn local_addr(&self) -> SocketAddr {
        self.listener.local_addr()
    }

    /// The token, where it was made here.
    pub(super) fn made_token(&self) -> Option<String> {
        None
    }

    pub(super) async fn serve(self, admin: Admin, stop: CancellationToken) {
        self.listener.serve(move || Operators(admin.clone()), stop).await;
    }
}

struct Operators(Admin);

impl Service<Request<Incoming>> for Operators {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        Box::pin(self.0.clone().answer(request))
    }
}
