//! A request whose route would rather run it without a claim than not at all, after the store has failed.
//!
//! Nothing is recorded of it. It is otherwise a run like any other: its client cannot cancel it, and this process does
//! not run it twice at a time.

use bytes::Bytes;
use hapax_core::{RecordId, StoreError};
use http::{HeaderName, HeaderValue, Request, Response, request};
use http_body::Body;
use tower_service::Service;

use super::{Exchange, refusal};
use crate::engine::Refusal;
use crate::http::body::read::Read;
use crate::http::body::{RequestBody, ResponseBody};
use crate::http::classify;
use crate::observe;

/// Marks a response that passed without protection.
static PROTECTED: HeaderName = HeaderName::from_static("idempotency-protected");

/// In the extensions of a request that passes: the record that its run would have had.
#[derive(Clone, Copy)]
pub(super) struct PassingAs(pub(super) RecordId);

/// What a request needs to run once more from its beginning.
pub(super) type Spare<S> = (S, Box<request::Parts>, Read);

impl Exchange {
    /// Runs the request without a claim, unless this process runs it already.
    pub(super) async fn pass<S, B, R>(
        &self,
        (inner, mut parts, read): Spare<S>,
        id: RecordId,
        error: StoreError,
    ) -> Result<Response<ResponseBody<R>>, S::Error>
    where
        S: Service<Request<RequestBody<B>>, Response = Response<R>> + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Send + 'static,
        B: Body<Data = Bytes> + Send + 'static,
        R: Body<Data = Bytes> + Send + 'static,
    {
        let (exchange, why) = (self.clone(), error.to_string());
        parts.extensions.insert(PassingAs(id));
        let run = async move {
            tracing::warn!(route = %exchange.route().label, error = why, "the store failed; a request runs unprotected");
            exchange.count(observe::Outcome::Unprotected);
            exchange.run_unprotected(inner, Request::from_parts(*parts, RequestBody::read(read))).await
        };
        let mut response = match self.shared.hapax.engine.pass(id, error, run).await {
            Ok(passed) => passed?,
            // It is counted already, and there is no record of it to be named.
            Err(refusal @ Refusal::Panicked { .. }) => self.problem(&refusal::of(&refusal)),
            Err(refusal) => return Ok(self.refuse(&refusal::of(&refusal).about(id))),
        };
        response.headers_mut().insert(PROTECTED.clone(), HeaderValue::from_static("false"));
        Ok(response)
    }

    async fn run_unprotected<S, B, R>(
        self,
        mut inner: S,
        request: Request<RequestBody<B>>,
    ) -> Result<Response<ResponseBody<R>>, S::Error>
    where
        S: Service<Request<RequestBody<B>>, Response = Response<R>>,
        R: Body<Data = Bytes>,
    {
        std::future::poll_fn(|cx| inner.poll_ready(cx)).await?;
        let response = inner.call(request).await?;
        let (answer, _unrecorded) = self.conclude(response, None, None).await;
        let mut response = answer.response;
        classify::strip(response.headers_mut());
        Ok(response)
    }
}
