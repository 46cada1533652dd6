//! [`Gate`]: a stand-in for authentication, limits or validation in front of the layer.

use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::future::{Either, MapOk, Ready, TryFutureExt, ready};
use http::{Request, Response, StatusCode};
use http_body_util::Empty;
use tower_service::Service;

/// The request header that names the status with which the gate answers instead of letting the request through.
pub const GATE_HEADER: &str = "Suite-Gate";

/// Answers a request that carries [`GATE_HEADER`] with the status given there, and passes every other one on.
#[derive(Clone, Debug)]
pub struct Gate<S> {
    inner: S,
}

impl<S> Gate<S> {
    /// A gate in front of `inner`.
    pub fn new(inner: S) -> Self {
        Self { inner }
    }
}

/// The empty body of a refusal, or the body of the inner service.
pub type GateBody<R> = http_body_util::Either<Empty<Bytes>, R>;

type Passed<F, R> = MapOk<F, fn(Response<R>) -> Response<GateBody<R>>>;

impl<S, B, R> Service<Request<B>> for Gate<S>
where
    S: Service<Request<B>, Response = Response<R>>,
{
    type Response = Response<GateBody<R>>;
    type Error = S::Error;
    type Future = Either<Ready<Result<Self::Response, S::Error>>, Passed<S::Future, R>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let named = request.headers().get(GATE_HEADER);
        match named.and_then(|status| StatusCode::from_bytes(status.as_bytes()).ok()) {
            Some(status) => {
                let mut response = Response::new(GateBody::Left(Empty::new()));
                *response.status_mut() = status;
                Either::Left(ready(Ok(response)))
            }
            None => Either::Right(self.inner.call(request).map_ok(|response| response.map(GateBody::Right))),
        }
    }
}
