//! The trait bounds of the layer: it can be put around all usual services.

use std::convert::Infallible;

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use bytes::Bytes;
use hapax::http::{IdempotencyLayer, RequestBody, ResponseBody};
use hapax::{Hapax, MemoryStore};
use http::{Request, Response};
use http_body_util::combinators::{BoxBody, UnsyncBoxBody};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::service::TowerToHyperService;
use tower::util::BoxCloneService;
use tower::{BoxError, Layer as _, Service, ServiceBuilder, ServiceExt as _, service_fn};

fn layer() -> IdempotencyLayer {
    IdempotencyLayer::new(Hapax::new(MemoryStore::new()))
}

fn request<B>(body: B) -> Request<B> {
    Request::post("/").header("Idempotency-Key", "k").body(body).unwrap()
}

/// Sends two requests and checks that the second response is a replay.
async fn check<S, B, R>(mut service: S, body: impl Fn() -> B)
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Error: std::fmt::Debug,
{
    for is_replayed in [false, true] {
        let response = service.ready().await.unwrap().call(request(body())).await.unwrap();
        assert_eq!(response.headers().contains_key("x-idempotent-replayed"), is_replayed);
    }
}

#[tokio::test]
async fn a_service_with_a_boxed_error() {
    let fallible = service_fn(|_request: Request<RequestBody<Full<Bytes>>>| async {
        Ok::<_, BoxError>(Response::new(Full::from("done")))
    });
    check(layer().layer(fallible), Full::<Bytes>::default).await;
}

#[tokio::test]
async fn a_boxed_service_inside_and_outside() {
    let inner = service_fn(|request: Request<RequestBody<Full<Bytes>>>| async {
        let body = request.into_body().collect().await?.to_bytes();
        Ok::<_, BoxError>(Response::new(Full::from(body)))
    });
    let stack = ServiceBuilder::new()
        .map_response(|response: Response<ResponseBody<Full<Bytes>>>| response.map(|body| body.boxed()))
        .layer(layer())
        .service(BoxCloneService::new(inner));
    let boxed: BoxCloneService<_, Response<BoxBody<Bytes, Infallible>>, BoxError> =
        BoxCloneService::new(stack);
    check(boxed, || Full::from("order")).await;
}

#[tokio::test]
async fn bodies_that_are_not_sync() {
    type Unsync = UnsyncBoxBody<Bytes, BoxError>;
    let inner = service_fn(|request: Request<RequestBody<Unsync>>| async {
        Ok::<_, Infallible>(Response::new(request.into_body().boxed_unsync()))
    });
    check(layer().layer(inner), || Full::from("order").map_err(BoxError::from).boxed_unsync()).await;
}

#[tokio::test]
async fn a_router_with_state_a_nested_router_and_a_single_route() {
    let orders = || post(|State(name): State<&'static str>| async move { name });
    for router in [
        Router::new().route("/", orders()).layer(layer()).with_state("a"),
        Router::new().route("/", orders().layer(layer())).with_state("a"),
        Router::new().merge(Router::new().route("/", orders()).layer(layer())).with_state("a"),
        Router::new().fallback_service(Router::new().route("/", orders()).with_state("a")).layer(layer()),
        Router::new().route("/", orders()).layer(layer().for_axum()).with_state("a"),
        Router::new().route("/", orders().layer(layer().for_axum())).with_state("a"),
    ] {
        check(router, axum::body::Body::empty).await;
    }
}

#[test]
fn a_service_for_hyper() {
    fn served<S>(_: S)
    where
        S: hyper::service::Service<Request<Incoming>, Future: Send> + Clone + Send + Sync + 'static,
    {
    }
    let inner = service_fn(|request: Request<RequestBody<Incoming>>| async {
        Ok::<_, BoxError>(Response::new(request.into_body()))
    });
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let layer = runtime.block_on(async { layer() });
    served(TowerToHyperService::new(layer.layer(inner)));
}
