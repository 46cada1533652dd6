//! [`ResponseFuture`]: what the layer answers, with no box around what merely passes.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hapax_core::BoxFuture;
use http::Response;
use pin_project_lite::pin_project;

use super::body::ResponseBody;
use super::classify;
use super::exchange::Exchange;

pin_project! {
    /// The answer to one request.
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<F, B, E> {
        #[pin]
        kind: Kind<F, B, E>,
    }
}

pin_project! {
    #[project = KindProjection]
    enum Kind<F, B, E> {
        Passed { #[pin] answer: F },
        Unkeyed { #[pin] answer: F, exchange: Exchange },
        Refused { response: Option<Box<Response<ResponseBody<B>>>> },
        Covered { answer: BoxFuture<'static, Result<Response<ResponseBody<B>>, E>> },
    }
}

impl<F, B, E> ResponseFuture<F, B, E> {
    pub(super) fn passed(answer: F) -> Self {
        Self { kind: Kind::Passed { answer } }
    }

    /// Passed on without the handler's word to us, which is not for clients.
    pub(super) fn unkeyed(answer: F, exchange: Exchange) -> Self {
        Self { kind: Kind::Unkeyed { answer, exchange } }
    }

    pub(super) fn refused(response: Response<ResponseBody<B>>) -> Self {
        Self { kind: Kind::Refused { response: Some(Box::new(response)) } }
    }

    pub(super) fn covered(answer: BoxFuture<'static, Result<Response<ResponseBody<B>>, E>>) -> Self {
        Self { kind: Kind::Covered { answer } }
    }
}

impl<F, B, E> Future for ResponseFuture<F, B, E>
where
    F: Future<Output = Result<Response<B>, E>>,
{
    type Output = Result<Response<ResponseBody<B>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().kind.project() {
            KindProjection::Passed { answer } => {
                Poll::Ready(ready!(answer.poll(cx)).map(|response| response.map(ResponseBody::passed)))
            }
            KindProjection::Unkeyed { answer, exchange } => {
                Poll::Ready(ready!(answer.poll(cx)).map(|mut response| {
                    classify::strip(response.headers_mut());
                    exchange.passed(response)
                }))
            }
            KindProjection::Refused { response } => {
                Poll::Ready(Ok(*response.take().expect("a future is not polled after it ended")))
            }
            KindProjection::Covered { answer } => answer.as_mut().poll(cx),
        }
    }
}

impl<F, B, E> std::fmt::Debug for ResponseFuture<F, B, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ResponseFuture")
    }
}
