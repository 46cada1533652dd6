//! A refusal by what stands behind the layer, such as the proxy whose origin cannot be reached: it is said as the route
//! says its own refusals, about the record of this request.

use bytes::Bytes;
use hapax_core::RecordId;
use http::Response;

use super::Exchange;
use crate::http::body::ResponseBody;
use crate::http::grpc;
use crate::http::policy::Classifier;
use crate::http::problem::Refused;

impl Exchange {
    /// The refusal as this route says it, with everything that its maker put into the extensions of the response. None
    /// where the response is none.
    pub(super) fn restated<R>(
        &self,
        response: &mut Response<R>,
        id: Option<RecordId>,
    ) -> Option<Response<Bytes>> {
        let Refused { mut problem, is_grpc } = response.extensions_mut().remove()?;
        problem.reference = id;
        let policy = self.policy();
        let mut restated = if is_grpc || policy.classifier == Classifier::Grpc {
            grpc::refusal(&problem)
        } else {
            problem.response(&policy.refusals)
        };
        let extensions = restated.extensions_mut();
        extensions.extend(std::mem::take(response.extensions_mut()));
        extensions.get_or_insert(problem.outcome());
        Some(restated)
    }

    /// An answer that no record is about, on its way out.
    pub(in crate::http) fn passed<R>(&self, mut response: Response<R>) -> Response<ResponseBody<R>> {
        match self.restated(&mut response, None) {
            Some(restated) => restated.map(|body| ResponseBody::whole(body, None)),
            None => response.map(ResponseBody::passed),
        }
    }
}
