//! [`UpstreamService`]: forwards a request to the upstream, and maps errors to outcomes of its key.
//!
//! The key of a request that was not sent is released, since nothing can have happened. If any part of it may have been
//! sent, it is uncertain, whatever the error.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hapax::http::{Code, Outcome, Protection, RequestBody};
use hapax::observe::Outage;
use hapax_core::Reason;
use hapax_proxy::{ClientBody, Forward, ForwardBody, ForwardError, RequestSlot};
use http::{HeaderName, Request, Response, StatusCode, Uri};
use hyper::upgrade::OnUpgrade;
use tower_service::Service;

use super::options::UpstreamOptions;
use super::refusals::is_grpc;
use crate::failure::Failure;

/// The outcome that the origin declares for a claimed request.
const OUTCOME: HeaderName = HeaderName::from_static("idempotency-outcome");

/// The service inside the layer.
#[derive(Clone, Debug)]
pub(crate) struct UpstreamService {
    shared: Arc<Shared>,
}

/// One allocation, because each request increments a reference count that all cores share.
#[derive(Debug)]
struct Shared {
    forward: Forward,
    outage: Outage,
}

impl UpstreamService {
    /// Forwards to these addresses in turn. Must be called inside a runtime, which also checks their health.
    pub(crate) fn new(addresses: &[Uri], options: &UpstreamOptions) -> Result<Self, Failure> {
        Forward::new(addresses, &options.proxy_options()).map(Self::over).map_err(super::setup_failure)
    }

    pub(super) fn over(forward: Forward) -> Self {
        let outage = Outage::new("the upstream is unreachable", "the upstream is reachable again");
        Self { shared: Arc::new(Shared { forward, outage }) }
    }
}

impl Shared {
    /// Notes whether the upstream is reachable.
    fn observe(&self, error: Option<&ForwardError>) {
        match error {
            None | Some(ForwardError::AmbiguousResponse) => self.outage.succeeded(),
            Some(ForwardError::NotSent) => self.outage.failed(&NOT_SENT),
            Some(_) => {}
        }
    }
}

impl Service<Request<RequestBody<ClientBody>>> for UpstreamService {
    type Response = Response<ForwardBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<RequestBody<ClientBody>>) -> Self::Future {
        let protection = request.extensions_mut().remove::<Protection>();
        let is_claimed = protection.as_ref().and_then(Protection::context).is_some();
        if is_claimed {
            // A claimed request has one response, so it stays HTTP.
            request.extensions_mut().remove::<OnUpgrade>();
        }
        if let Some(body) = request.body_mut().passed_mut() {
            body.begin_forwarding();
        }
        let is_grpc = is_grpc(request.headers());
        let slot = request.extensions().get::<RequestSlot>().cloned();
        let shared = self.shared.clone();
        Box::pin(async move {
            let note_upstream = |upstream: &Arc<str>| {
                if let Some(context) = protection.as_ref().and_then(Protection::context) {
                    context.calls_upstream(upstream.clone());
                }
            };
            let sent = shared.forward.send(request, note_upstream).await;
            shared.observe(sent.as_ref().err());
            Ok(match sent {
                Ok(mut response) => {
                    if !is_claimed && response.status() != StatusCode::SWITCHING_PROTOCOLS {
                        response.headers_mut().remove(OUTCOME);
                    }
                    response
                }
                Err(error) => {
                    let mut response = error_response(&error, is_grpc);
                    // It counts as running until the layer has recorded the outcome.
                    if let Some(slot) = slot {
                        response.extensions_mut().insert(slot);
                    }
                    response
                }
            })
        })
    }
}

const NOT_SENT: &str = "no upstream address accepted the request; nothing was sent";
const NO_CONNECTION: &str = "all connections to the upstream are in use; nothing was sent";
const CONNECTION_LOST: &str =
    "the connection to the upstream was lost; the outcome of the operation is unknown";
const BAD_RESPONSE: &str =
    "the response of the upstream is malformed; the outcome of the operation is unknown";
const BODY_TOO_SLOW: &str =
    "the request body was too slow and was aborted; the upstream has received a part of it";
const BODY_INCOMPLETE: &str = "the request body is incomplete; the upstream has received a part of it";
const TIMED_OUT: &str = "the upstream did not respond in time; the outcome of the operation is unknown";

/// The problem document of an error, with the outcome for the layer.
fn error_response(error: &ForwardError, is_grpc: bool) -> Response<ForwardBody> {
    let (reason, detail) = match error {
        ForwardError::NotSent => return unsent(None, NOT_SENT, is_grpc),
        ForwardError::NoConnection => return unsent(Some(error.status()), NO_CONNECTION, is_grpc),
        ForwardError::TimedOut => (Reason::TimedOut, TIMED_OUT),
        // The upstream has received a part of the request, and only the upstream knows what it did with it.
        ForwardError::BodyTooSlow => (Reason::NoAnswer, BODY_TOO_SLOW),
        ForwardError::BodyIncomplete => (Reason::NoAnswer, BODY_INCOMPLETE),
        ForwardError::MalformedResponse(_) | ForwardError::AmbiguousResponse => {
            (Reason::NoAnswer, BAD_RESPONSE)
        }
        _ => (Reason::Reset, CONNECTION_LOST),
    };
    let mut response = problem(Code::Uncertain, Some(error.status()), detail, Outcome::Uncertain, is_grpc);
    response.extensions_mut().insert(reason);
    response
}

fn unsent(status: Option<StatusCode>, detail: &'static str, is_grpc: bool) -> Response<ForwardBody> {
    problem(Code::UpstreamUnavailable, status, detail, Outcome::Release, is_grpc)
}

fn problem(
    code: Code,
    status: Option<StatusCode>,
    detail: &'static str,
    outcome: Outcome,
    is_grpc: bool,
) -> Response<ForwardBody> {
    let mut response = if is_grpc { code.grpc_response(detail) } else { code.response(status, detail) };
    response.extensions_mut().insert(outcome);
    response.map(ForwardBody::from)
}
