//! [`AxumIdempotencyLayer`]: the layer with axum's body type for requests and responses.
//!
//! Axum boxes every body of another type, in requests and in responses. A body that only passes through the layer is
//! axum's body inside the layer's type, so it is unwrapped instead of boxed a second time.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::BoxError;
use axum::body::{Body, HttpBody};
use bytes::Bytes;
use http::{Request, Response};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use crate::http::{Idempotency, IdempotencyLayer, RequestBody, ResponseBody, ResponseFuture};

/// An [`IdempotencyLayer`] for axum's routers and routes; made by [`IdempotencyLayer::for_axum`].
#[derive(Clone, Debug)]
#[must_use]
pub struct AxumIdempotencyLayer(IdempotencyLayer);

/// An axum service whose requests are safe to retry; made by [`AxumIdempotencyLayer`].
#[derive(Clone, Debug)]
pub struct AxumIdempotency<S>(Idempotency<WithAxumBody<S>>);

/// The inner service, called with axum's body type.
#[derive(Clone, Debug)]
struct WithAxumBody<S>(S);

pin_project! {
    /// The response future of one request.
    #[must_use = "futures do nothing unless polled"]
    pub struct AxumResponseFuture<F, R, E> {
        #[pin]
        response: ResponseFuture<F, R, E>,
    }
}

impl IdempotencyLayer {
    /// The same layer for axum only, to be called last: it accepts any body and returns axum's body type. A request
    /// that is not covered passes without a second box around its bodies; the behaviour is otherwise the same.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// use axum::{Router, routing::post};
    /// use hapax::http::IdempotencyLayer;
    /// use hapax::{Hapax, MemoryStore};
    ///
    /// let hapax = Hapax::new(MemoryStore::new());
    /// let app: Router = Router::new()
    ///     .route("/orders", post(|| async { "created" }))
    ///     .layer(IdempotencyLayer::new(&hapax).for_axum());
    /// # });
    /// ```
    pub fn for_axum(self) -> AxumIdempotencyLayer {
        AxumIdempotencyLayer(self)
    }
}

impl<S> Layer<S> for AxumIdempotencyLayer {
    type Service = AxumIdempotency<S>;

    fn layer(&self, inner: S) -> AxumIdempotency<S> {
        AxumIdempotency(self.0.layer(WithAxumBody(inner)))
    }
}

impl<S, B, R> Service<Request<B>> for AxumIdempotency<S>
where
    S: Service<Request<Body>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    R: HttpBody<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = AxumResponseFuture<S::Future, R, S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        AxumResponseFuture { response: self.0.call(request.map(Body::new)) }
    }
}

impl<S: Service<Request<Body>>> Service<Request<RequestBody<Body>>> for WithAxumBody<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<RequestBody<Body>>) -> S::Future {
        self.0.call(request.map(|body| match body.into_passed() {
            Ok(own) => own,
            Err(read) => Body::new(read),
        }))
    }
}

impl<F, R, E> Future for AxumResponseFuture<F, R, E>
where
    F: Future<Output = Result<Response<R>, E>>,
    R: HttpBody<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    type Output = Result<Response<Body>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // A body that is axum's already is not boxed again.
        let own = |body: ResponseBody<R>| match body.into_passed() {
            Ok(passed) => Body::new(passed),
            Err(ours) => Body::new(ours),
        };
        Poll::Ready(ready!(self.project().response.poll(cx)).map(|response| response.map(own)))
    }
}

impl<F, R, E> fmt::Debug for AxumResponseFuture<F, R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AxumResponseFuture")
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http_body_util::{BodyExt as _, Full};
    use tower::{ServiceExt as _, service_fn};

    use super::*;
    use crate::{Hapax, MemoryStore};

    #[test]
    fn only_what_passes_is_taken_out_again() {
        assert!(RequestBody::passed(Body::empty()).into_passed().is_ok());
        assert!(ResponseBody::passed(Body::empty()).into_passed().is_ok());
        assert!(ResponseBody::<Body>::whole(Bytes::from("order"), None).into_passed().is_err());
        let streamed = ResponseBody::streamed(Bytes::from("order"), Box::pin(Body::empty()));
        assert!(streamed.into_passed().is_err());
    }

    #[tokio::test]
    async fn bodies_of_any_type_arrive_with_a_key_and_without() {
        let echo = service_fn(|request: Request<Body>| async {
            let body = request.into_body().collect().await.unwrap().to_bytes();
            Ok::<_, Infallible>(Response::new(Full::from(body)))
        });
        let service = IdempotencyLayer::new(Hapax::new(MemoryStore::new())).for_axum().layer(echo);
        for (key, is_replayed) in [(None, false), (Some("k"), false), (Some("k"), true)] {
            let mut request = Request::post("/orders");
            if let Some(key) = key {
                request = request.header("Idempotency-Key", key);
            }
            let request = request.body(Full::<Bytes>::from("order")).unwrap();

            let response = service.clone().oneshot(request).await.unwrap();

            assert_eq!(response.headers().contains_key("x-idempotent-replayed"), is_replayed);
            assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "order");
        }
    }
}
