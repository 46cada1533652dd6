//! [`ProblemResponses`]: problem documents for requests that the proxy refuses before the layer sees them.

use bytes::Bytes;
use hapax::http::Code;
use hapax_proxy::RefusalResponses;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Response};

use crate::problem;

const TOO_MANY: &str =
    "too many running requests on this connection, including those whose streams were reset";

/// Responds with problem documents, and to gRPC calls with a gRPC status.
#[derive(Debug)]
pub(super) struct ProblemResponses;

impl RefusalResponses for ProblemResponses {
    fn connect(&self) -> Response<Bytes> {
        problem::TUNNEL_REFUSED.response()
    }

    fn too_many_requests(&self, fields: &HeaderMap) -> Response<Bytes> {
        if is_grpc(fields) {
            Code::RateLimited.grpc_response(TOO_MANY)
        } else {
            Code::RateLimited.response(None, TOO_MANY)
        }
    }
}

/// Whether a request is a gRPC call.
pub(super) fn is_grpc(headers: &HeaderMap) -> bool {
    const ESSENCE: &[u8] = b"application/grpc";
    let Some(value) = headers.get(CONTENT_TYPE).map(|value| value.as_bytes()) else { return false };
    value.split_at_checked(ESSENCE.len()).is_some_and(|(essence, rest)| {
        essence.eq_ignore_ascii_case(ESSENCE) && matches!(rest.first(), None | Some(b'+' | b';' | b' '))
    })
}
