//! The problem documents of the sidecar. All others are the layer's.

use bytes::Bytes;
use hapax::http::TYPE_BASE;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use serde_json::json;

/// A refusal of the sidecar.
#[derive(Debug)]
pub(crate) struct SidecarProblem {
    /// The last segment of its type, and the name of its page in `docs/errors`.
    pub(crate) name: &'static str,
    status: StatusCode,
    title: &'static str,
    detail: &'static str,
    /// Whether the same request may be retried unchanged.
    retryable: bool,
    retry_with_same_key: bool,
    safe_new_key: bool,
}

/// The `authorise` URL did not respond.
pub(crate) const AUTHORISE_UNAVAILABLE: SidecarProblem = SidecarProblem {
    name: "authorise-unavailable",
    status: StatusCode::SERVICE_UNAVAILABLE,
    title: "The authorisation service is unavailable",
    detail: "The authorisation service did not respond in time, or not with a decision. Nothing was executed.",
    retryable: true,
    retry_with_same_key: true,
    safe_new_key: true,
};

/// The upstream could read the path of a protected request as another path.
pub(crate) const PATH_AMBIGUOUS: SidecarProblem = SidecarProblem {
    name: "path-ambiguous",
    status: StatusCode::BAD_REQUEST,
    title: "The path is ambiguous",
    detail: "Servers may normalise it to another path, because of empty segments, dots, semicolons, backslashes, \
             encoded slashes or stray percent signs. Nothing was executed.",
    retryable: false,
    retry_with_same_key: true,
    safe_new_key: false,
};

/// A reverse proxy opens no tunnels.
pub(crate) const TUNNEL_REFUSED: SidecarProblem = SidecarProblem {
    name: "tunnel-refused",
    status: StatusCode::NOT_IMPLEMENTED,
    title: "Tunnels are not supported",
    detail: "This server is a reverse proxy and opens no tunnels. Nothing was sent.",
    retryable: false,
    retry_with_same_key: false,
    safe_new_key: false,
};

impl SidecarProblem {
    /// The response with the problem document.
    pub(crate) fn response(&self) -> Response<Bytes> {
        let document = json!({
            "type": format!("{TYPE_BASE}{}", self.name),
            "title": self.title,
            "status": self.status.as_u16(),
            "detail": self.detail,
            "retryable": self.retryable,
            "retry_with_same_key": self.retry_with_same_key,
            "safe_new_key": self.safe_new_key,
        });
        let mut response = Response::new(Bytes::from(document.to_string()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if self.retryable {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
