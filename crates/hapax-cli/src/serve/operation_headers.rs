//! What the service behind is told about a protected request: which operation it is for, and which attempt.
//!
//! The same id is in the question to a `reconcile` URL, so a service that keeps it with what it does can answer.

use std::task::{Context, Poll};

use hapax::http::Protection;
use http::{HeaderName, HeaderValue, Request};
use tower_service::Service;

/// The record's id: the same for every attempt at one operation.
pub(super) const OPERATION: HeaderName = HeaderName::from_static("idempotency-operation");
/// 1 for the first attempt. It grows, so that a delayed older attempt can be refused.
pub(super) const ATTEMPT: HeaderName = HeaderName::from_static("idempotency-attempt");

/// Tells the inner service.
#[derive(Clone, Debug)]
pub(super) struct OperationHeaders<S> {
    inner: S,
}

impl<S> OperationHeaders<S> {
    pub(super) fn new(inner: S) -> Self {
        Self { inner }
    }
}

impl<S, B> Service<Request<B>> for OperationHeaders<S>
where
    S: Service<Request<B>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> S::Future {
        let told = Protection::of(request.extensions())
            .and_then(Protection::context)
            .map(|context| (context.id(), context.attempt()));
        let headers = request.headers_mut();
        // Whoever sends these from outside makes them up.
        match told {
            Some((id, attempt)) => {
                let id =
                    HeaderValue::try_from(id.to_string()).expect("an id is written in hexadecimal digits");
                headers.insert(OPERATION, id);
                headers.insert(ATTEMPT, attempt.into());
            }
            None => {
                headers.remove(&OPERATION);
                headers.remove(&ATTEMPT);
            }
        }
        self.inner.call(request)
    }
}
