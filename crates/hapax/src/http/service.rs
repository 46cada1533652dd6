//! [`Idempotency`]: the tower service, which drives one [`exchange`](super::exchange) for each request.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

use super::body::{RequestBody, ResponseBody};
use super::exchange::{Entry, Exchange, Step};
use super::future::ResponseFuture;
use super::layer::{IdempotencyLayer, LayerState};

/// An HTTP service whose requests are safe to retry; made by [`IdempotencyLayer`].
#[derive(Clone, Debug)]
pub struct Idempotency<S> {
    inner: S,
    layer: IdempotencyLayer,
}

impl<S> Idempotency<S> {
    pub(super) fn new(inner: S, shared: Arc<LayerState>) -> Self {
        Self { inner, layer: IdempotencyLayer { shared } }
    }
}

impl<S, B, R> Service<Request<B>> for Idempotency<S>
where
    S: Service<Request<RequestBody<B>>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    R: Body<Data = Bytes> + Send + 'static,
{
    type Response = Response<ResponseBody<R>>;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future, R, S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        match self.layer.exchange(&request) {
            Entry::Pass(passing) => {
                ResponseFuture::passing(self.inner.call(request.map(RequestBody::passed)), passing)
            }
            Entry::Answer(response) => ResponseFuture::answered(response.map(ResponseBody::from)),
            Entry::Covered(exchange) => {
                // The service that is ready runs; its clone takes the next request.
                let next = self.inner.clone();
                let inner = std::mem::replace(&mut self.inner, next);
                ResponseFuture::covered(Box::pin(drive(exchange, inner, request)))
            }
        }
    }
}

/// Drives a covered request to its answer.
async fn drive<S, B, R>(
    exchange: Exchange,
    mut inner: S,
    request: Request<B>,
) -> Result<Response<ResponseBody<R>>, S::Error>
where
    S: Service<Request<RequestBody<B>>, Response = Response<R>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    R: Body<Data = Bytes> + Send + 'static,
{
    match exchange.enter(request).await {
        Step::Pass(request, passing) => Ok(passing.finish(inner.call(request).await?)),
        Step::Answer(response) => Ok(response),
        // Boxed: duplicates that wait need no room for an execution.
        Step::Run(request, running) => Box::pin(running.run(move || inner.call(request))).await,
    }
}
