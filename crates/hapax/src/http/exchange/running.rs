//! [`Running`]: a request that executes now, and what its response comes to.

use std::convert::Infallible;
use std::fmt;
use std::future::{Future, ready};

use bytes::Bytes;
use hapax_core::key::PrincipalHash;
use hapax_core::{Reason, RecordId};
use http::header::{ACCEPT_ENCODING, ORIGIN};
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use http_body::Body;

use super::conclude::Answer;
use super::refusal;
use super::responder::Responder;
use crate::engine::{Ended, Execution, Finish, Permit, Refusal, UnprotectedPermit};
use crate::http::body::ResponseBody;
use crate::http::classify;
use crate::http::limits::OpenClaim;
use crate::observe;

/// Marks a response whose outcome could not be stored yet.
static RECORDED: HeaderName = HeaderName::from_static("idempotency-recorded");
/// Marks the response of an execution without a claim.
static PROTECTED: HeaderName = HeaderName::from_static("idempotency-protected");

/// A request whose key is claimed and that executes now.
///
/// Where the store has taken its claim, the lease is renewed as long as this exists, and a drop without a response leaves
/// the record uncertain. Where it runs [unprotected](super::super::Protection::Unprotected), there is no record.
#[must_use = "a request that is dropped without a response leaves its record uncertain"]
pub struct Running {
    pub(super) responder: Responder,
    pub(super) permission: Permission,
    pub(super) fields: RequestFields,
    pub(super) principal: Option<PrincipalHash>,
    /// None where limits on new operations do not apply.
    pub(super) open: Option<OpenClaim>,
}

/// By what right a request executes.
pub(super) enum Permission {
    Claimed(Permit),
    /// The store failed, and the route prefers running to refusing.
    Unprotected(UnprotectedPermit),
}

/// An execution with the answer of the service, or its error.
type Executed<R, E> = Execution<Result<Box<Answer<R>>, E>>;

/// The fields of a request that its answer depends on.
pub(super) struct RequestFields(HeaderMap);

impl RequestFields {
    pub(super) fn of(headers: &HeaderMap, echoed: Option<&HeaderName>) -> Self {
        let mut fields = HeaderMap::new();
        for name in [&ORIGIN, &ACCEPT_ENCODING].into_iter().chain(echoed) {
            for value in headers.get_all(name) {
                fields.append(name, value.clone());
            }
        }
        Self(fields)
    }
}

impl Running {
    /// The record of the request.
    pub fn id(&self) -> RecordId {
        match &self.permission {
            Permission::Claimed(permit) => permit.id(),
            Permission::Unprotected(permit) => permit.id(),
        }
    }

    /// Executes the request by `respond`, records what the response means for the key, and returns the answer.
    ///
    /// When its future is dropped, as when a connection closes, the execution goes on in a task of its own. A panic of
    /// `respond` leaves the record uncertain.
    ///
    /// # Errors
    /// Those of `respond`. They leave the record uncertain.
    pub async fn run<C, F, R, E>(self, respond: C) -> Result<Response<ResponseBody<R>>, E>
    where
        C: FnOnce() -> F + Send + 'static,
        F: Future<Output = Result<Response<R>, E>> + Send + 'static,
        R: Body<Data = Bytes> + Send + 'static,
        E: Send + 'static,
    {
        let Self { responder, permission, fields, principal, open } = self;
        match permission {
            Permission::Claimed(permit) => {
                let id = permit.id();
                let origin = fields.0.get(ORIGIN).cloned();
                let concluding = responder.clone();
                let work = move |_context| async move {
                    let _open = open;
                    concluding.execute(respond().await, origin, id, principal).await
                };
                responder.answer(permit.run(work).await, &fields.0, id)
            }
            Permission::Unprotected(permit) => {
                let running = responder.clone();
                let work = async move {
                    let _open = open;
                    running.count(observe::OutcomeLabel::Unprotected);
                    let (answer, _unrecorded) = running.conclude(respond().await?, None, None).await;
                    Ok(answer.response)
                };
                let mut response = match permit.run(work).await {
                    Ok(passed) => passed?,
                    // It is counted already, and no record is about it.
                    Err(refusal) => responder.problem(&refusal::of(&refusal)).map(ResponseBody::from),
                };
                classify::remove_override(response.headers_mut());
                response.headers_mut().insert(PROTECTED.clone(), HeaderValue::from_static("false"));
                responder.mark_derived(&mut response);
                Ok(response)
            }
        }
    }

    /// Records what the response means for the key, and returns the answer. For hosts that have executed the request
    /// themselves; otherwise as [`run`](Self::run). A deadline does not apply: the response is there.
    pub async fn finish<R>(self, response: Response<R>) -> Response<ResponseBody<R>>
    where
        R: Body<Data = Bytes> + Send + 'static,
    {
        let Self { permission, .. } = self;
        let permission = match permission {
            Permission::Claimed(permit) => Permission::Claimed(permit.without_deadline()),
            unprotected @ Permission::Unprotected(_) => unprotected,
        };
        let running = Self { permission, ..self };
        let Ok(answer) = running.run(|| ready(Ok::<_, Infallible>(response))).await;
        answer
    }

    /// Records that the service gave no response: the record becomes uncertain.
    pub async fn fail(self) {
        let _no_response = self.run(|| ready(Err::<Response<String>, ()>(()))).await;
    }
}

impl Responder {
    /// What the end of an execution means for the record.
    async fn execute<R, E>(
        self,
        response: Result<Response<R>, E>,
        origin: Option<HeaderValue>,
        id: RecordId,
        principal: Option<PrincipalHash>,
    ) -> Ended<Result<Box<Answer<R>>, E>>
    where
        R: Body<Data = Bytes>,
    {
        match response {
            Ok(response) => {
                let (answer, finish) = self.conclude(response, origin.as_ref(), Some(id)).await;
                if let Finish::Pin(recorded) = &finish {
                    self.count_stored(recorded, principal);
                }
                Ended { value: Ok(Box::new(answer)), finish }
            }
            // The service failed without a response: whether the operation happened is unknown.
            Err(error) => Ended { value: Err(error), finish: Finish::Uncertain(Reason::NoAnswer) },
        }
    }

    /// The answer for the client after an execution.
    fn answer<R, E>(
        &self,
        execution: Result<Executed<R, E>, Refusal>,
        request: &HeaderMap,
        id: RecordId,
    ) -> Result<Response<ResponseBody<R>>, E> {
        match execution {
            Ok(Execution::Ran { value: Ok(answer), recorded }) => {
                self.count(if recorded { answer.counted } else { observe::OutcomeLabel::Unrecorded });
                let mut response = answer.response;
                if !recorded {
                    response.headers_mut().insert(RECORDED.clone(), HeaderValue::from_static("false"));
                }
                self.policy().replay.prepare_first(request, response.headers_mut());
                self.mark(&mut response, "accepted");
                Ok(response)
            }
            Ok(Execution::Ran { value: Err(error), .. }) => {
                self.count(observe::OutcomeLabel::Uncertain);
                Err(error)
            }
            Ok(Execution::Replayed(recorded)) => Ok(self.replay(request, recorded)),
            Err(refusal) => Ok(self.refuse(&refusal::of(&refusal).about(id))),
        }
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("id", &self.id()).finish_non_exhaustive()
    }
}
