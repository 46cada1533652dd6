//! A gRPC service that returns the requested status, behind the layer, and two clients: tonic's, and one with access to
//! the wire.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{BufMut as _, Bytes, BytesMut};
use hapax::http::{HttpPolicy, IdempotencyLayer, KeyMode};
use http::response::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message as _;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tonic::body::Body;
use tonic::client::Grpc as Client;
use tonic::codegen::{BoxFuture, Service, tokio_stream};
use tonic::server::{Grpc, NamedService};
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Code, Response, Status};
use tonic_prost::ProstCodec;
use tower::{ServiceExt as _, service_fn};

use crate::world::{Effects, World};

/// The listed method.
pub(crate) const LISTED: &str = "/test.Ledger/Book";
/// A method that is not listed.
pub(crate) const UNLISTED: &str = "/test.Ledger/Look";
/// A streaming method that is not listed.
pub(crate) const STREAM: &str = "/test.Ledger/Watch";

/// The requested result: a status, or one of the constants here.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Ask {
    #[prost(int32, tag = "1")]
    pub(crate) say: i32,
}

impl Ask {
    pub(crate) const OK: Self = Self { say: 0 };
    pub(crate) const PANIC: Self = Self { say: 100 };
    pub(crate) const SLOW: Self = Self { say: 101 };
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Booked {
    /// The number of bookings.
    #[prost(uint32, tag = "1")]
    pub(crate) count: u32,
}

/// The service on a free port. Its effects are counted in its world.
pub(crate) struct Bookkeeper {
    pub(crate) world: World,
    /// Signalled when a slow call has begun.
    pub(crate) began: Arc<Notify>,
    /// Lets a slow call end.
    pub(crate) finish: Arc<Notify>,
    address: SocketAddr,
    server: JoinHandle<()>,
}

impl Bookkeeper {
    pub(crate) fn start() -> Self {
        Self::with(HttpPolicy::grpc().key(KeyMode::Required))
    }

    fn with(policy: HttpPolicy) -> Self {
        let world = World::new();
        let ledger = Ledger { effects: world.effects.clone(), began: Arc::default(), finish: Arc::default() };
        let (began, finish) = (ledger.began.clone(), ledger.finish.clone());
        let (address, server) = served(&world, policy, ledger);
        Self { world, began, finish, address, server }
    }

    /// A gateway with the layer, and the service behind it, without one.
    pub(crate) fn behind_a_gateway() -> (Self, Self) {
        let service = Self::with(HttpPolicy::off());
        let channel = Endpoint::from_shared(format!("http://{}", service.address)).unwrap().connect_lazy();
        let world = World::new();
        let policy = HttpPolicy::grpc().key(KeyMode::Required);
        let (address, server) = served(&world, policy, Gateway { channel });
        (Self { world, began: Arc::default(), finish: Arc::default(), address, server }, service)
    }

    async fn client(&self) -> Client<Channel> {
        let channel = Endpoint::from_shared(format!("http://{}", self.address)).unwrap().connect().await;
        let mut client = Client::new(channel.unwrap());
        client.ready().await.unwrap();
        client
    }

    /// One call of [`LISTED`] by tonic's client, with this metadata.
    pub(crate) async fn call(
        &self,
        ask: Ask,
        metadata: &[(&'static str, &str)],
    ) -> Result<Response<Booked>, Status> {
        self.call_method(LISTED, ask, metadata).await
    }

    pub(crate) async fn call_method(
        &self,
        method: &'static str,
        ask: Ask,
        metadata: &[(&'static str, &str)],
    ) -> Result<Response<Booked>, Status> {
        let request = request(ask, metadata);
        let codec = ProstCodec::<Ask, Booked>::default();
        self.client().await.unary(request, PathAndQuery::from_static(method), codec).await
    }

    /// Everything that [`STREAM`] sends.
    pub(crate) async fn watch(&self, key: &str) -> Vec<Booked> {
        let request = request(Ask::OK, &[("idempotency-key", key)]);
        let codec = ProstCodec::<Ask, Booked>::default();
        let path = PathAndQuery::from_static(STREAM);
        let mut stream =
            self.client().await.server_streaming(request, path, codec).await.unwrap().into_inner();
        let mut all = Vec::new();
        while let Some(booked) = stream.message().await.unwrap() {
            all.push(booked);
        }
        all
    }

    /// One call of [`LISTED`] on the wire: head, data, trailers.
    pub(crate) async fn wire(&self, ask: Ask, key: Option<&str>) -> (Parts, Bytes, Option<HeaderMap>) {
        let stream = tokio::net::TcpStream::connect(self.address).await.unwrap();
        let (mut client, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let mut request = Request::post(format!("http://{}{LISTED}", self.address))
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let response = client.send_request(request.body(Full::new(framed(&ask))).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        let collected = body.collect().await.unwrap();
        let trailers = collected.trailers().cloned();
        (parts, collected.to_bytes(), trailers)
    }
}

impl Drop for Bookkeeper {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// The service on a free port, behind a layer with this policy for [`LISTED`].
fn served<S>(world: &World, policy: HttpPolicy, service: S) -> (SocketAddr, JoinHandle<()>)
where
    S: Service<Request<Body>, Response = http::Response<Body>, Error = Infallible>
        + NamedService
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send + 'static,
{
    let idempotency = IdempotencyLayer::new(&world.hapax).policy(HttpPolicy::off()).route(LISTED, policy);
    let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = incoming.local_addr().unwrap();
    let server = Server::builder().layer(idempotency).add_service(service).serve_with_incoming(incoming);
    (address, tokio::spawn(async move { server.await.unwrap() }))
}

fn request(ask: Ask, metadata: &[(&'static str, &str)]) -> tonic::Request<Ask> {
    let mut request = tonic::Request::new(ask);
    for (name, value) in metadata {
        request.metadata_mut().append(*name, value.parse().unwrap());
    }
    request
}

/// One uncompressed message with its length prefix.
fn framed(ask: &Ask) -> Bytes {
    let mut frame = BytesMut::new();
    frame.put_u8(0);
    frame.put_u32(u32::try_from(ask.encoded_len()).unwrap());
    ask.encode(&mut frame).unwrap();
    frame.freeze()
}

#[derive(Clone)]
struct Ledger {
    effects: Arc<Effects>,
    began: Arc<Notify>,
    finish: Arc<Notify>,
}

impl Ledger {
    async fn book(&self, ask: Ask) -> Result<Response<Booked>, Status> {
        let count = self.effects.happen();
        if ask == Ask::SLOW {
            self.began.notify_one();
            self.finish.notified().await;
        }
        assert_ne!(ask, Ask::PANIC, "a planned panic");
        let code = Code::from(if ask == Ask::SLOW { 0 } else { ask.say });
        if code != Code::Ok {
            let mut status = Status::new(code, format!("returned {count} times, 100 %"));
            status.metadata_mut().insert("x-reason", "planned".parse().unwrap());
            return Err(status);
        }
        let mut response = Response::new(Booked { count });
        response.metadata_mut().append("x-page", "1".parse().unwrap());
        response.metadata_mut().append("x-page", "2".parse().unwrap());
        Ok(response)
    }
}

/// Forwards calls to a service of the same name.
#[derive(Clone)]
struct Gateway {
    channel: Channel,
}

impl NamedService for Gateway {
    const NAME: &'static str = Ledger::NAME;
}

impl Service<Request<Body>> for Gateway {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<http::Response<Body>, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let answer = self.channel.clone().oneshot(request);
        Box::pin(async {
            Ok(answer.await.unwrap_or_else(|error| Status::from_error(error.into()).into_http()))
        })
    }
}

impl NamedService for Ledger {
    const NAME: &'static str = "test.Ledger";
}

impl Service<Request<Body>> for Ledger {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<http::Response<Body>, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let ledger = self.clone();
        Box::pin(async move {
            let mut grpc = Grpc::new(ProstCodec::<Booked, Ask>::default());
            Ok(if request.uri().path() == STREAM {
                let watch = service_fn(|_: tonic::Request<Ask>| {
                    let count = ledger.effects.happen();
                    let stream = tokio_stream::iter([Ok(Booked { count }), Ok(Booked { count })]);
                    std::future::ready(Ok::<_, Status>(Response::new(stream)))
                });
                grpc.server_streaming(watch, request).await
            } else {
                let book = service_fn(|request: tonic::Request<Ask>| {
                    let ledger = ledger.clone();
                    async move { ledger.book(request.into_inner()).await }
                });
                grpc.unary(book, request).await
            })
        })
    }
}
