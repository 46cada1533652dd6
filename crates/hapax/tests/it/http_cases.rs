//! Every case of `spec/cases/http` against the exchange itself, driven by a host of this test, and against the layer:
//! around a plain hyper service, inside an axum router, there with axum's own bodies too, and inside tonic's server.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use bytes::Bytes;
use hapax::http::exchange::{Entry, Step};
use hapax::http::{IdempotencyLayer, RequestBody, ResponseBody};
use hapax::{Hapax, MemoryStore};
use hapax_core::{BoxFuture, ManualClock};
use hapax_testkit::Faulty;
use hapax_testkit::http_suite::{
    self, Feature, Gate, InProcess, Origin, OriginBody, Running, Server, Settings, StartError, Surface,
};
use http::{Request, Response};
use http_body::Body;
use tonic::service::Routes;
use tonic::transport::server::TcpIncoming;
use tower::{Layer as _, Service as _, layer::layer_fn, service_fn};

/// What drives the layer.
#[derive(Clone, Copy)]
enum Around {
    /// A host without the tower service.
    Exchange,
    Hyper,
    Axum,
    AxumOwnBodies,
    Tonic,
}

impl Surface for Around {
    fn name(&self) -> &str {
        match self {
            Self::Exchange => "exchange",
            Self::Hyper => "hyper",
            Self::Axum => "axum",
            Self::AxumOwnBodies => "axum, own bodies",
            Self::Tonic => "tonic",
        }
    }

    fn can(&self) -> &[Feature] {
        &Feature::ALL
    }

    async fn start(&self, settings: &Settings, origin: Origin) -> Result<Running, StartError> {
        let settings: hapax::http::Settings = serde_json::from_value(settings.clone().into())?;
        let clock = ManualClock::new();
        let store = Faulty::new(Arc::new(MemoryStore::with_clock(clock.clone())));
        // The cases move the store's clock and have it fail: what is asked of it must get there.
        let hapax = Hapax::builder(store.clone()).cache(0).build();
        let layer = IdempotencyLayer::new(&hapax).policy(settings.policy()?);
        let server = match self {
            Self::Exchange => {
                let host = service_fn(move |request| serve(layer.clone(), origin.clone(), request));
                Server::start(Gate::new(host)).await?
            }
            Self::Hyper => Server::start(Gate::new(layer.layer(origin))).await?,
            Self::Axum => Server::start(Gate::new(routed(origin).layer(layer))).await?,
            Self::AxumOwnBodies => Server::start(Gate::new(routed(origin).layer(layer.for_axum()))).await?,
            Self::Tonic => {
                let incoming = TcpIncoming::bind((Ipv4Addr::LOCALHOST, 0).into())?;
                let addr = incoming.local_addr()?;
                let server = tonic::transport::Server::builder()
                    .accept_http1(true)
                    .layer(layer_fn(Gate::new))
                    .layer(layer)
                    .add_routes(Routes::from(routed(origin)))
                    .serve_with_incoming(incoming);
                // Where serving fails, every case fails.
                Server::of_task(addr, tokio::spawn(async move { drop(server.await) }))
            }
        };
        let drain = Box::new(move || {
            let hapax = hapax.clone();
            Box::pin(async move {
                hapax.drain(Duration::ZERO).await;
            }) as BoxFuture<'static, ()>
        });
        Ok(InProcess { server, clock, store, drain }.running())
    }
}

/// Serves one request by the exchange.
async fn serve<B>(
    layer: IdempotencyLayer,
    mut origin: Origin,
    request: Request<B>,
) -> Result<Response<ResponseBody<OriginBody>>, Infallible>
where
    B: Body<Data = Bytes, Error: std::error::Error + Send + Sync> + Send + 'static,
{
    let exchange = match layer.exchange(&request) {
        Entry::Pass(passing) => {
            return Ok(passing.finish(origin.call(request.map(RequestBody::from)).await?));
        }
        Entry::Answer(response) => return Ok(response.map(ResponseBody::from)),
        Entry::Covered(exchange) => exchange,
    };
    match exchange.enter(request).await {
        Step::Pass(request, passing) => Ok(passing.finish(origin.call(request).await?)),
        Step::Answer(response) => Ok(response),
        Step::Run(request, running) => running.run(move || origin.call(request)).await,
    }
}

fn routed(origin: Origin) -> Router {
    Router::new().fallback_service(origin)
}

async fn every_case(around: Around) {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/cases/http");
    http_suite::run(&cases, &around, |_| true).await.unwrap().assert_passed();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_holds_for_the_exchange() {
    every_case(Around::Exchange).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_holds_around_hyper() {
    every_case(Around::Hyper).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_holds_inside_axum() {
    every_case(Around::Axum).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_holds_inside_axum_with_its_own_bodies() {
    every_case(Around::AxumOwnBodies).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_holds_inside_tonic() {
    every_case(Around::Tonic).await;
}
