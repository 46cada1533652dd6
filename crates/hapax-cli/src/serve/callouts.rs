//! The callouts of a route: `reconcile` asks whether an uncertain operation happened, `authorise` whether a request is
//! allowed.
//!
//! Any response that is not a clear answer is no answer: the record stays uncertain, the request is refused.

mod reconcile_response;

use std::future::Future;

use bytes::Bytes;
use hapax::{Question, Reconciled};
use http::header::{ACCEPT, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, Uri, request};
use http_body_util::Full;
use serde_json::json;

use self::reconcile_response::ReconcileResponse;
use crate::config::LimitOptions;
use crate::http_client::{HttpClient, PoolOptions, RequestError, RequestLimits};
use crate::problem;

/// The method and the path of the request, for the `authorise` URL.
const ORIGINAL_METHOD: HeaderName = HeaderName::from_static("x-original-method");
const ORIGINAL_URI: HeaderName = HeaderName::from_static("x-original-uri");

/// Fields that an `authorise` request leaves out: those of the body and of the connection, and the standard key.
const NOT_FORWARDED: [&str; 13] = [
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "idempotency-key",
];

/// Sends callouts.
#[derive(Clone, Debug)]
pub(super) struct Callouts {
    client: HttpClient,
    limits: RequestLimits,
}

impl Callouts {
    pub(super) fn new(limits: &LimitOptions) -> Self {
        let pool = PoolOptions { idle_max: limits.ask_idle_max, idle_timeout: limits.ask_keep_alive.0 };
        let limits = RequestLimits { timeout: limits.ask_timeout.0, body_bytes_max: limits.ask_bytes_max };
        Self { client: HttpClient::new(pool), limits }
    }

    /// Asks whether an uncertain operation happened.
    pub(super) async fn reconcile(self, url: Uri, question: Question) -> Reconciled<Response<Bytes>> {
        let body = json!({
            "operation": question.id.to_string(),
            "attempt": question.fence.attempt,
            "reason": question.reason.name(),
        });
        let mut request = Request::new(Full::from(body.to_string()));
        *request.method_mut() = Method::POST;
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
        let id = question.id;
        let response = match self.send(url, request).await {
            Ok(response) if response.status().is_success() => response,
            Ok(response) => {
                tracing::warn!(%id, status = response.status().as_u16(), "reconcile: error status; the record stays uncertain");
                return Reconciled::Unknown;
            }
            Err(error) => {
                tracing::warn!(%id, %error, "reconcile: no response; the record stays uncertain");
                return Reconciled::Unknown;
            }
        };
        match serde_json::from_slice::<ReconcileResponse>(response.body())
            .map_err(|_| ())
            .and_then(ReconcileResponse::reconciled)
        {
            Ok(reconciled) => reconciled,
            Err(()) => {
                tracing::warn!(%id, "reconcile: invalid response; the record stays uncertain");
                Reconciled::Unknown
            }
        }
    }

    /// Asks whether a request is allowed: the fields of the response if it is, otherwise the response for the client.
    /// `excluded` are the headers that are not sent, such as those that may hold a key.
    pub(super) fn authorise(
        self,
        url: Uri,
        head: &request::Parts,
        excluded: &[HeaderName],
    ) -> impl Future<Output = Result<HeaderMap, Response<Bytes>>> + Send + use<> {
        let request = authorise_request(head, excluded);
        async move {
            match self.send(url, request).await {
                Ok(response) if response.status().is_success() => Ok(response.into_parts().0.headers),
                Ok(response) if response.status().is_client_error() => Err(refused(response)),
                Ok(response) => {
                    tracing::warn!(
                        status = response.status().as_u16(),
                        "authorise: error status; the request is refused"
                    );
                    Err(problem::AUTHORISE_UNAVAILABLE.response())
                }
                Err(error) => {
                    tracing::warn!(%error, "authorise: no response; the request is refused");
                    Err(problem::AUTHORISE_UNAVAILABLE.response())
                }
            }
        }
    }

    async fn send(
        &self,
        url: Uri,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Response<Bytes>, RequestError> {
        *request.uri_mut() = url;
        self.client.send(request, self.limits).await
    }
}

/// The principal in an `authorise` response; empty if there is none or more than one.
pub(super) fn principal_in(response: &HeaderMap, header: &HeaderName) -> Vec<u8> {
    let mut lines = response.get_all(header).iter().map(HeaderValue::as_bytes);
    match (lines.next(), lines.next()) {
        (Some(name), None) if !name.is_empty() => name.to_vec(),
        _ => {
            tracing::warn!(%header, "authorise: the response does not name the principal; the request is refused");
            Vec::new()
        }
    }
}

/// The `authorise` request: the head of the original one without the fields that are not forwarded and without `excluded`.
fn authorise_request(head: &request::Parts, excluded: &[HeaderName]) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::default());
    let connection_fields: Vec<&str> = head
        .headers
        .get_all(http::header::CONNECTION)
        .into_iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','))
        .map(str::trim)
        .collect();
    let is_forwarded = |name: &HeaderName| {
        !NOT_FORWARDED.contains(&name.as_str())
            && !excluded.contains(name)
            && !connection_fields.iter().any(|of| name.as_str().eq_ignore_ascii_case(of))
    };
    let headers = request.headers_mut();
    for (name, value) in head.headers.iter().filter(|(name, _)| is_forwarded(name)) {
        headers.append(name, value.clone());
    }
    // Values from a client are not trusted.
    headers.remove(&ORIGINAL_METHOD);
    headers.remove(&ORIGINAL_URI);
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
    for (name, text) in [(ORIGINAL_METHOD, head.method.as_str()), (ORIGINAL_URI, path)] {
        if let Ok(text) = HeaderValue::from_str(text) {
            headers.insert(name, text);
        }
    }
    request
}

/// The refusal for the client: the status, the body, its type and the authentication challenge.
fn refused(response: Response<Bytes>) -> Response<Bytes> {
    let (mut parts, body) = response.into_parts();
    let kept = [WWW_AUTHENTICATE, CONTENT_TYPE];
    let fields =
        kept.iter().flat_map(|name| parts.headers.get_all(name).iter().map(move |value| (name, value)));
    let fields: Vec<_> = fields.map(|(name, value)| (name.clone(), value.clone())).collect();
    parts.headers = HeaderMap::new();
    parts.headers.extend(fields);
    parts.extensions = http::Extensions::new();
    Response::from_parts(parts, body)
}

#[cfg(test)]
mod tests;
