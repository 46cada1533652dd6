//! The id of a request, by which its caller, the service behind and the logs speak of the same thing.
//!
//! One that came with the request is kept; otherwise one is made. It goes to the service behind and back to the
//! caller, also on an answer that is replayed: it names the request, not the operation.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::{HeaderName, HeaderValue, Request, Response};
use pin_project_lite::pin_project;
use tower_service::Service;
use tracing::Instrument as _;
use tracing::instrument::Instrumented;

/// Where the id is.
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// A longer one is no id, but an attempt to fill logs.
const LENGTH_MAX: usize = 128;

/// Gives every request an id.
#[derive(Clone, Debug)]
pub(super) struct RequestIds<S> {
    inner: S,
}

impl<S> RequestIds<S> {
    pub(super) fn new(inner: S) -> Self {
        Self { inner }
    }
}

impl<S, B, R> Service<Request<B>> for RequestIds<S>
where
    S: Service<Request<B>, Response = Response<R>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = WithId<Instrumented<S::Future>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let id = match request.headers().get(&REQUEST_ID).filter(|id| is_id(id)) {
            Some(id) => id.clone(),
            None => made(),
        };
        let span = tracing::info_span!("request", id = id.to_str().unwrap_or_default());
        request.headers_mut().insert(REQUEST_ID, id.clone());
        WithId { answer: self.inner.call(request).instrument(span), id: Some(id) }
    }
}

/// Letters, digits and what ids are usually joined with: nothing that a log could mistake for something else.
fn is_id(id: &HeaderValue) -> bool {
    let is_usual = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:+/=@".contains(byte);
    !id.is_empty() && id.len() <= LENGTH_MAX && id.as_bytes().iter().all(is_usual)
}

fn made() -> HeaderValue {
    let key = hapax::Key::random();
    HeaderValue::from_str(key.as_str()).unwrap_or(HeaderValue::from_static("unknown"))
}

pin_project! {
    /// The answer, with the id of its request.
    pub(super) struct WithId<F> {
        #[pin]
        answer: F,
        id: Option<HeaderValue>,
    }
}

impl<F, R, E> Future for WithId<F>
where
    F: Future<Output = Result<Response<R>, E>>,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut answer = ready!(this.answer.poll(cx));
        if let (Ok(response), Some(id)) = (&mut answer, this.id.take()) {
            response.headers_mut().insert(REQUEST_ID, id);
        }
        Poll::Ready(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_forge_a_line_of_a_log_is_no_id() {
        for id in ["a", "7f3a-91bc", "trace/1:2+3=@_."] {
            assert!(is_id(&HeaderValue::from_static(id)), "{id}");
        }
        for id in ["", "two words", "tab\there", "quote\"", "brace{", "\u{e9}"] {
            assert!(!is_id(&HeaderValue::from_bytes(id.as_bytes()).unwrap()), "{id}");
        }
        assert!(!is_id(&HeaderValue::try_from("x".repeat(LENGTH_MAX + 1)).unwrap()));
        assert!(is_id(&made()) && made() != made());
    }
}
