//! One attempt: the request, its redirects and the body of its answer, within a time limit.

use std::error::Error as _;
use std::future::Future;
use std::time::Duration;

use http::HeaderMap;
use http::header::CONTENT_TYPE;
use hyper_util::client::legacy;
use reqwest::{Request, Url};

use super::redirect;
use crate::age::Moment;
use crate::error::BoxError;
use crate::plan::Plan;
use crate::problem::{self, Problem};
use crate::response;
use crate::retry;

/// Redirects of one attempt. More are a loop.
const REDIRECTS_MAX: u32 = 5;

/// Sends one request, once.
pub(crate) trait Transport: Send {
    fn send(&mut self, request: Request) -> impl Future<Output = Result<reqwest::Response, Failure>> + Send;
}

/// An attempt without an answer.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: FailureKind,
    pub(crate) source: BoxError,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FailureKind {
    /// The request itself is not valid; nothing was sent.
    Invalid,
    /// The answer of a request that must not be repeated was cut off.
    CutOffRefusal,
    /// The same request may get an answer.
    Repeatable(LostBy),
}

/// How an answer was lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LostBy {
    /// There was no connection, so nothing was sent.
    Connect,
    /// The time of the attempt was over.
    Timeout,
    /// The connection ended, or the answer was cut off.
    Transport,
}

impl Failure {
    /// Whether the server may have the request.
    pub(crate) fn may_have_been_received(&self) -> bool {
        !matches!(self.kind, FailureKind::Invalid | FailureKind::Repeatable(LostBy::Connect))
    }

    /// The label of a retry.
    pub(crate) fn reason(&self) -> &'static str {
        match self.kind {
            FailureKind::Repeatable(LostBy::Connect) => "connect",
            FailureKind::Repeatable(LostBy::Timeout) => "timeout",
            _ => "transport",
        }
    }

    fn timed_out() -> Self {
        let source = "the attempt timed out".into();
        Self { kind: FailureKind::Repeatable(LostBy::Timeout), source }
    }

    /// An error of the HTTP client for a request to this URL.
    pub(crate) fn of(error: reqwest::Error, url: &Url) -> Self {
        // About another URL it is the error of a redirect that the HTTP client has followed, after the request was sent, or of
        // a request that a middleware made.
        let is_of_request = error.url().is_some_and(|other| other == url);
        let kind = if error.is_builder() && is_of_request {
            FailureKind::Invalid
        } else if is_of_request && is_of_connector(&error) {
            FailureKind::Repeatable(LostBy::Connect)
        } else if error.is_timeout() {
            FailureKind::Repeatable(LostBy::Timeout)
        } else {
            FailureKind::Repeatable(LostBy::Transport)
        };
        // The query of a URL may hold a secret.
        Self { kind, source: error.without_url().into() }
    }

    #[cfg(feature = "middleware")]
    pub(crate) fn transport(source: BoxError) -> Self {
        Self { kind: FailureKind::Repeatable(LostBy::Transport), source }
    }
}

/// Whether the connector failed, so that nothing was sent. `reqwest::Error::is_connect` searches all causes: it is true as
/// well for the body of a request that was sent, when its stream has failed to connect to its own source.
fn is_of_connector(error: &reqwest::Error) -> bool {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<legacy::Error>());
    cause.is_some_and(legacy::Error::is_connect)
}

/// A complete answer.
pub(super) struct Answer {
    pub(super) response: reqwest::Response,
    pub(super) problem: Option<Problem>,
}

/// Sends the request of the plan once, and follows redirects within its origin.
pub(super) async fn run(
    plan: &Plan,
    transport: &mut impl Transport,
    timeout: Duration,
) -> Result<Answer, Failure> {
    let exchange = async {
        let response = exchange(plan, transport).await?;
        receive(plan, response).await
    };
    tokio::time::timeout(timeout, exchange).await.unwrap_or_else(|_| Err(Failure::timed_out()))
}

async fn exchange(plan: &Plan, transport: &mut impl Transport) -> Result<reqwest::Response, Failure> {
    let mut url = plan.head.url().clone();
    for followed in 0.. {
        let request = plan.request(&url).ok_or_else(|| Failure {
            kind: FailureKind::Invalid,
            source: "the body of the request was sent already".into(),
        })?;
        let response = transport.send(request).await?;
        match redirect::target(response.status(), response.headers(), &url) {
            Some(target) if followed < REDIRECTS_MAX && plan.is_replayable() => {
                if plan.lifetime_left(Moment::now()).is_zero() {
                    return Err(Failure::timed_out());
                }
                url = target;
            }
            _ => return Ok(response),
        }
    }
    unreachable!("the loop has no end of its own")
}

/// Receives the body where the call or the retry needs it.
async fn receive(plan: &Plan, response: reqwest::Response) -> Result<Answer, Failure> {
    let (status, headers) = (response.status(), response.headers());
    let is_problem = problem::is_document(headers);
    if !is_problem && (plan.streams_response || is_endless(headers)) {
        let problem = Problem::of(headers, &[]);
        return Ok(Answer { response, problem });
    }
    let (response, body) = response::buffer(response).await.map_err(|source| {
        let kind = if retry::is_never_retried(status) {
            FailureKind::CutOffRefusal
        } else {
            FailureKind::Repeatable(LostBy::Transport)
        };
        Failure { kind, source }
    })?;
    let problem = Problem::of(response.headers(), &body);
    Ok(Answer { response, problem })
}

fn is_endless(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|value| value.as_bytes().starts_with(b"text/event-stream"))
}
