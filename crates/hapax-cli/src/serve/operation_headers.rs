//! Header fields of protected requests that identify the operation and the attempt to the upstream.
//!
//! A `reconcile` callout has the same id, so an upstream that stores it with the effect can respond.

use std::task::{Context, Poll};

use hapax::http::Protection;
use http::{HeaderName, HeaderValue, Request};
use tower_service::Service;

/// The record's id: the same for every attempt at one operation.
pub(super) const OPERATION: HeaderName = HeaderName::from_static("idempotency-operation");
/// The attempt number, from 1. The upstream can refuse a delayed request of an older attempt.
pub(super) const ATTEMPT: HeaderName = HeaderName::from_static("idempotency-attempt");

/// Sets both fields on protected requests and removes them from all others.
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
        let context = Protection::of(request.extensions())
            .and_then(Protection::context)
            .map(|context| (context.id(), context.attempt()));
        let headers = request.headers_mut();
        // Values from a client are not trusted.
        match context {
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
