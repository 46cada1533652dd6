//! [`Gate`]: stands in front of the layer for whatever authenticates, limits or validates there.

use std::task::{Context, Poll};

use futures_util::future::{Either, Ready, ready};
use http::{Request, Response, StatusCode};
use tower_service::Service;

/// The request header that names the status with which the gate answers instead of letting the request through.
pub const GATE_HEADER: &str = "Suite-Gate";

/// Answers a request that carries [`GATE_HEADER`] with the status given there, and passes every other one on.
#[derive(Clone, Debug)]
pub struct Gate<S> {
    inner: S,
}

impl<S> Gate<S> {
    /// A gate before `inner`.
    pub fn new(inner: S) -> Self {
        Self { inner }
    }
}

impl<S, B, R> Service<Request<B>> for Gate<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    R: Default,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = Either<Ready<Result<Response<R>, S::Error>>, S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let named = request.headers().get(GATE_HEADER);
        match named.and_then(|status| StatusCode::from_bytes(status.as_bytes()).ok()) {
            Some(status) => {
                let mut response = Response::new(R::default());
                *response.status_mut() = status;
                Either::Left(ready(Ok(response)))
            }
            None => Either::Right(self.inner.call(request)),
        }
    }
}
