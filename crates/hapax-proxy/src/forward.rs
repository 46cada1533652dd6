//! [`Forward`]: sends a request to the origin, and says what it means when no answer comes.
//!
//! A request that was not sent is released, for nothing can have happened. One of which anything may have been sent is
//! uncertain, whatever went wrong then.

mod body;
mod tunnel;

use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use hapax::http::{Code, Outcome, RequestBody};
use hapax::observe::Outage;
use hapax_core::Reason;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri, request};
use http_body::Body as _;
use hyper::upgrade::OnUpgrade;
use tower_service::Service;

pub(crate) use self::body::ForwardBody;
pub(super) use self::tunnel::Switch;
use super::fields::{self, OUTCOME, Wish};
use super::options::UpstreamOptions;
use super::received::{Broken, Received};
use super::runs::Running;
use super::upstream::{Answer, By, Needs, NoAnswer, Outgoing, Upstreams};
use crate::failure::Failure;

/// The service behind the layer: the origin.
#[derive(Clone, Debug)]
pub(crate) struct Forward {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    upstreams: Upstreams,
    body_idle: Duration,
    tunnel_idle: Duration,
    outage: Outage,
}

impl Forward {
    /// Sends to these addresses, in turn. Inside of a runtime it also watches them.
    pub(crate) fn new(addresses: &[Uri], options: &UpstreamOptions) -> Result<Self, Failure> {
        let upstreams = Upstreams::new(addresses, options)?;
        let (body_idle, tunnel_idle) = (options.body_idle.0, options.tunnel_idle.0);
        let outage = Outage::new("the service is unreachable", "the service is reached again");
        Ok(Self { shared: Arc::new(Shared { upstreams, body_idle, tunnel_idle, outage }) })
    }
}

impl Service<Request<RequestBody<Received>>> for Forward {
    type Response = Response<ForwardBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody<Received>>) -> Self::Future {
        Box::pin(self.shared.clone().forward(request).map(Ok))
    }
}

impl Shared {
    #[expect(clippy::manual_async_fn, reason = "an `async fn` has room for its arguments twice")]
    fn forward(
        self: Arc<Self>,
        request: Request<RequestBody<Received>>,
    ) -> impl Future<Output = Response<ForwardBody>> + Send {
        async move {
            let (mut parts, body) = request.into_parts();
            let running = parts.extensions.remove::<Running>();
            let mut response = self.exchange(parts, body).await;
            // It runs until its answer is recorded.
            if let Some(running) = running {
                response.extensions_mut().insert(running);
            }
            response
        }
    }

    #[expect(clippy::manual_async_fn, reason = "an `async fn` has room for its arguments twice")]
    fn exchange(
        self: Arc<Self>,
        mut parts: request::Parts,
        mut body: RequestBody<Received>,
    ) -> impl Future<Output = Response<ForwardBody>> + Send {
        async move {
            let context = parts.extensions.remove::<hapax::Context>();
            let is_claimed = context.is_some();
            let client = parts.extensions.remove::<OnUpgrade>();
            // A claimed request has one answer, so it stays HTTP.
            let client = client.filter(|_| !is_claimed && fields::is_upgrade(&parts.headers));
            let wish = if client.is_some() && self.upstreams.can_change_protocol() {
                Wish::Kept
            } else {
                Wish::Dropped
            };
            let needs = if wish == Wish::Kept { Needs::Http1 } else { Needs::Any };
            let empty = body.is_end_stream() && fields::says_empty(&parts.method, &parts.headers);
            fields::leave_connection(&mut parts.headers, parts.version, wish);
            if empty {
                parts.headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
            }
            let is_grpc = is_grpc(&parts.headers);
            parts.extensions.clear();

            if let Some(received) = body.passed_mut() {
                received.begin_passing();
            }

            // In a box: it is handed on until it is sent, and sometimes handed back.
            let request = Box::new(Request::from_parts(parts, Outgoing::new(body)));
            let sent = self.upstreams.send(request, needs, context.as_ref()).await;
            let Answer { mut response, by } = match sent {
                Ok(answer) => {
                    self.outage.succeeded();
                    answer
                }
                Err(why) => {
                    if matches!(why, NoAnswer::NotSent) {
                        self.outage.failed(&NOT_SENT);
                    }
                    return refusal(&why, is_grpc);
                }
            };
            if response.status() == StatusCode::SWITCHING_PROTOCOLS {
                let (Some(client), Wish::Kept, By::Http1(link, _)) = (client, wish, by) else {
                    // The request did not ask for it, so what the origin takes it for is not known.
                    return uncertain(StatusCode::BAD_GATEWAY, Reason::NoAnswer, UNCLEAR, is_grpc);
                };
                response.extensions_mut().insert(Switch::new(client, link, self.tunnel_idle));
                fields::leave_upstream(response.headers_mut(), Wish::Kept);
                return response.map(|_| ForwardBody::whole(Bytes::new()));
            }
            if !fields::is_framing_clear(response.headers()) {
                return uncertain(StatusCode::BAD_GATEWAY, Reason::NoAnswer, UNCLEAR, is_grpc);
            }
            fields::leave_upstream(response.headers_mut(), Wish::Dropped);
            if !is_claimed {
                response.headers_mut().remove(OUTCOME);
            }
            response.map(|body| match by {
                By::Http1(link, address) => ForwardBody::http1(body, link, address, self.body_idle),
                By::Http2 => ForwardBody::http2(body, self.body_idle),
            })
        }
    }
}

const NOT_SENT: &str = "no address of the origin took the request; nothing was sent";
const FULL: &str = "every connection to the origin is in use; nothing was sent";
const BROKE_OFF: &str = "the connection to the origin broke off; it is not known what came of the operation";
const UNCLEAR: &str = "the origin's answer cannot be understood; it is not known what came of the operation";
const BODY_SLOW: &str = "the body came too slowly and was given up; the origin has the beginning of it";
const BODY_CUT: &str = "the body broke off; the origin has the beginning of it";
const LATE: &str = "the origin did not answer in time; it is not known what came of the operation";

/// The answer where the origin has none.
fn refusal(why: &NoAnswer, is_grpc: bool) -> Response<ForwardBody> {
    match why {
        NoAnswer::NotSent => problem(Code::UpstreamUnavailable, None, NOT_SENT, Outcome::Release, is_grpc),
        NoAnswer::Full => {
            let status = Some(StatusCode::SERVICE_UNAVAILABLE);
            problem(Code::UpstreamUnavailable, status, FULL, Outcome::Release, is_grpc)
        }
        NoAnswer::Late => uncertain(StatusCode::GATEWAY_TIMEOUT, Reason::TimedOut, LATE, is_grpc),
        NoAnswer::Lost(error) => {
            tracing::debug!(%error, "the exchange with the upstream broke off");
            match error.source().and_then(|source| source.downcast_ref::<Broken>()) {
                // The origin has the beginning of the request. Only it knows what it makes of that.
                Some(Broken::TooSlow) => {
                    uncertain(StatusCode::REQUEST_TIMEOUT, Reason::NoAnswer, BODY_SLOW, is_grpc)
                }
                Some(Broken::CutShort(_) | Broken::Stopping) => {
                    uncertain(StatusCode::BAD_REQUEST, Reason::NoAnswer, BODY_CUT, is_grpc)
                }
                None if error.is_parse() => {
                    uncertain(StatusCode::BAD_GATEWAY, Reason::NoAnswer, UNCLEAR, is_grpc)
                }
                None => uncertain(StatusCode::BAD_GATEWAY, Reason::Reset, BROKE_OFF, is_grpc),
            }
        }
    }
}

fn uncertain(
    status: StatusCode,
    reason: Reason,
    detail: &'static str,
    is_grpc: bool,
) -> Response<ForwardBody> {
    let mut response = problem(Code::Uncertain, Some(status), detail, Outcome::Uncertain, is_grpc);
    response.extensions_mut().insert(reason);
    response
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
    response.map(ForwardBody::whole)
}

pub(super) fn is_grpc(headers: &HeaderMap) -> bool {
    const ESSENCE: &[u8] = b"application/grpc";
    let Some(value) = headers.get(CONTENT_TYPE).map(|value| value.as_bytes()) else { return false };
    value.split_at_checked(ESSENCE.len()).is_some_and(|(essence, rest)| {
        essence.eq_ignore_ascii_case(ESSENCE) && matches!(rest.first(), None | Some(b'+' | b';' | b' '))
    })
}
