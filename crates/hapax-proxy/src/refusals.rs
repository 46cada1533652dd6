//! Responses to requests that the proxy refuses before a service sees them.

use std::fmt;

use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderValue, Response, StatusCode};

/// Makes the responses to requests that no service sees. The default methods respond without a body.
pub trait RefusalResponses: fmt::Debug + Send + Sync + 'static {
    /// Responds to `CONNECT`: the proxy opens no tunnels.
    fn connect(&self) -> Response<Bytes> {
        empty(StatusCode::NOT_IMPLEMENTED)
    }

    /// Responds to a request, of which these are the fields, on an HTTP/2 connection that has as many running requests as
    /// it may have.
    fn too_many_requests(&self, fields: &HeaderMap) -> Response<Bytes> {
        let _ = fields;
        let mut response = empty(StatusCode::TOO_MANY_REQUESTS);
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        response
    }
}

/// Responses without a body.
#[derive(Clone, Copy, Debug, Default)]
pub struct EmptyResponses;

impl RefusalResponses for EmptyResponses {}

fn empty(status: StatusCode) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = status;
    response
}
