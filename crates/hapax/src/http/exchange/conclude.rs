//! The response of the service: what is recorded of it, and what the client gets.

use bytes::Bytes;
use hapax_core::key::PrincipalHash;
use hapax_core::{Reason, RecordId, Recorded};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, TRAILER};
use http::{HeaderMap, HeaderValue, Response, StatusCode, response};
use http_body::Body;
use tokio::time::Instant;

use super::refusal;
use super::responder::{Responder, announce};
use crate::engine::{Finish, not_kept};
use crate::http::body::ResponseBody;
use crate::http::body::read::{self, Collected};
use crate::http::canonical::header;
use crate::http::capture;
use crate::http::classify::{self, Outcome};
use crate::http::grpc;
use crate::http::policy::Classifier;
use crate::http::problem::{Code, Problem};
use crate::observe;

/// An answer, and how its request is counted.
pub(super) struct Answer<R> {
    pub(super) response: Response<ResponseBody<R>>,
    pub(super) counted: observe::OutcomeLabel,
}

impl Responder {
    /// Reads the response of the service and decides what becomes of its record, which is `id` where there is one.
    pub(super) async fn conclude<R>(
        &self,
        mut response: Response<R>,
        origin: Option<&HeaderValue>,
        id: Option<RecordId>,
    ) -> (Answer<R>, Finish)
    where
        R: Body<Data = Bytes>,
    {
        let policy = self.policy();
        let (mut parts, collected) = match self.restated(&mut response, id) {
            Some(restated) => {
                let (parts, data) = restated.into_parts();
                (parts, Collected::Whole { data, trailers: None })
            }
            None => {
                let (parts, body) = response.into_parts();
                let collected = self.collect(&parts, body).await;
                (parts, collected)
            }
        };
        let (outcome, recorded, body) = match collected {
            Collected::Whole { data, mut trailers } => {
                let outcome = self.outcome(&parts, &data, trailers.as_deref());
                let mut recorded =
                    capture::record(&policy.replay, origin, &parts, &data, trailers.as_deref());
                if policy.classifier == Classifier::Grpc
                    && let Some((_, class)) = grpc::outcome(&policy.outcomes, &parts, trailers.as_deref())
                {
                    recorded.class = class;
                }
                if policy.classifier != Classifier::Grpc && !parts.headers.contains_key(TRAILER) {
                    announce(trailers.as_deref(), &mut parts.headers);
                }
                // What is recorded is a copy. Sent instead of what was read, it is the only one.
                let data = if capture::has_content(parts.status) { recorded.payload.clone() } else { data };
                if outcome == Outcome::Uncertain {
                    self.forbid_retries(&mut parts.headers, trailers.as_deref_mut());
                }
                (outcome, recorded, ResponseBody::whole(data, trailers))
            }
            Collected::TooLarge { read, body } => {
                let outcome = self.outcome(&parts, &[], None);
                let recorded = capture::record(&policy.replay, None, &parts, &[], None);
                if outcome == Outcome::Uncertain {
                    self.forbid_retries(&mut parts.headers, None);
                }
                (outcome, not_kept(&recorded), ResponseBody::streamed(read, body))
            }
            Collected::CutShort => {
                let problem = Problem { reference: id, ..refusal::cut_short() };
                let response = self.problem(&problem).map(ResponseBody::from);
                let finish = Finish::Uncertain(Reason::Truncated);
                return (Answer { response, counted: observe::OutcomeLabel::Uncertain }, finish);
            }
        };
        let (finish, counted) = match outcome {
            Outcome::Pin => (Finish::Pin(recorded), observe::OutcomeLabel::Ran),
            Outcome::Release => {
                let is_unreachable = parts.extensions.get() == Some(&Code::UpstreamUnavailable);
                let counted = if is_unreachable {
                    observe::OutcomeLabel::Unreachable
                } else {
                    observe::OutcomeLabel::Failed
                };
                (Finish::Release(Some(recorded)), counted)
            }
            Outcome::Uncertain => {
                (Finish::Uncertain(classify::uncertain_reason(&mut parts)), observe::OutcomeLabel::Uncertain)
            }
        };
        parts.extensions.remove::<Outcome>();
        (Answer { response: Response::from_parts(parts, body), counted }, finish)
    }

    async fn collect<R>(&self, parts: &response::Parts, body: R) -> Collected<R>
    where
        R: Body<Data = Bytes>,
    {
        if is_endless(parts) {
            return Collected::TooLarge { read: Bytes::new(), body: Box::pin(body) };
        }
        let announced = read::announced_length(header::first(&parts.headers, &CONTENT_LENGTH))
            .filter(|_| capture::has_content(parts.status));
        let bytes_max = self.engine().outcome_bytes_max(&self.policy().engine);
        read::collect(body, announced, bytes_max).await
    }

    fn outcome(&self, parts: &response::Parts, body: &[u8], trailers: Option<&HeaderMap>) -> Outcome {
        let policy = self.policy();
        let seen = match policy.classifier {
            Classifier::Status => None,
            Classifier::GraphQl => classify::graphql(body),
            Classifier::Grpc => grpc::outcome(&policy.outcomes, parts, trailers).map(|(outcome, _)| outcome),
        };
        match seen {
            Some(seen) => classify::override_or(parts, seen),
            None => classify::classify_response(&policy.outcomes, parts),
        }
    }

    /// Counts the bytes that are kept for a caller, where the route limits them.
    pub(super) fn count_stored(&self, recorded: &Recorded, principal: Option<PrincipalHash>) {
        let policy = self.policy();
        if policy.limits.stored_bytes_max.is_some() {
            let (limits, bytes) = (&self.shared.limits, recorded.len() as u64);
            limits.stored(&policy.limits, principal, bytes, policy.engine.retention, Instant::now());
        }
    }
}

/// A stream of events has no end to wait for, and neither has a connection that changes its protocol.
fn is_endless(parts: &response::Parts) -> bool {
    let is_events = |value: &HeaderValue| {
        let value = value.as_bytes();
        value.get(..17).is_some_and(|start| start.eq_ignore_ascii_case(b"text/event-stream"))
    };
    parts.status == StatusCode::SWITCHING_PROTOCOLS || parts.headers.get(CONTENT_TYPE).is_some_and(is_events)
}
