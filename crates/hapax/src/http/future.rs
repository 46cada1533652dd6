//! [`ResponseFuture`]: the answer of the layer, without a box around requests that pass.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hapax_core::BoxFuture;
use http::Response;
use pin_project_lite::pin_project;

use super::body::ResponseBody;
use super::exchange::Passing;

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
        Passing { #[pin] response: F, passing: Option<Passing> },
        Answered { response: Option<Box<Response<ResponseBody<B>>>> },
        Covered { answer: BoxFuture<'static, Result<Response<ResponseBody<B>>, E>> },
    }
}

impl<F, B, E> ResponseFuture<F, B, E> {
    pub(super) fn passing(response: F, passing: Passing) -> Self {
        Self { kind: Kind::Passing { response, passing: Some(passing) } }
    }

    pub(super) fn answered(response: Response<ResponseBody<B>>) -> Self {
        Self { kind: Kind::Answered { response: Some(Box::new(response)) } }
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
            KindProjection::Passing { response, passing } => {
                let response = ready!(response.poll(cx))?;
                let passing = passing.take().expect("a future is not polled after it ended");
                Poll::Ready(Ok(passing.finish(response)))
            }
            KindProjection::Answered { response } => {
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
