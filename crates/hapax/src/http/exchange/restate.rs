//! A refusal by a service behind the layer, such as the proxy whose upstream cannot be reached: it is restated in the
//! form of the route's own refusals, about the record of this request.

use bytes::Bytes;
use hapax_core::RecordId;
use http::Response;

use super::responder::Responder;
use crate::http::grpc;
use crate::http::policy::Classifier;
use crate::http::problem::Refused;

impl Responder {
    /// The refusal in the form of this route, with all extensions of the response. None where the response is no
    /// refusal.
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
}
