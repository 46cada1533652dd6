//! The questions that a route may have asked of a URL: "did this happen?" and "may this caller do that?".
//!
//! Whatever is not a clear answer means that nobody knows: the record stays uncertain, the caller does not go on.

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

/// What the caller asks for, for whoever decides.
const ORIGINAL_METHOD: HeaderName = HeaderName::from_static("x-original-method");
const ORIGINAL_URI: HeaderName = HeaderName::from_static("x-original-uri");

/// Fields that describe a body or a connection, which the question has not got; and the usual key.
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

/// Sends questions.
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

    /// "Did this happen?"
    pub(super) async fn reconcile(self, url: Uri, question: Question) -> Reconciled<Response<Bytes>> {
        let words = json!({
            "operation": question.id.to_string(),
            "attempt": question.fence.attempt,
            "reason": question.reason.name(),
        });
        let mut request = Request::new(Full::from(words.to_string()));
        *request.method_mut() = Method::POST;
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
        let id = question.id;
        let response = match self.send(url, request).await {
            Ok(response) if response.status().is_success() => response,
            Ok(response) => {
                tracing::warn!(%id, status = response.status().as_u16(), "reconcile: no answer; still uncertain");
                return Reconciled::Unknown;
            }
            Err(error) => {
                tracing::warn!(%id, %error, "reconcile: nobody answers; still uncertain");
                return Reconciled::Unknown;
            }
        };
        match serde_json::from_slice::<ReconcileResponse>(response.body())
            .map_err(|_| ())
            .and_then(ReconcileResponse::reconciled)
        {
            Ok(reconciled) => reconciled,
            Err(()) => {
                tracing::warn!(%id, "reconcile: the answer makes no sense; still uncertain");
                Reconciled::Unknown
            }
        }
    }

    /// "May this caller do that?" The fields of an answer that says yes; a refusal is the answer for the caller.
    /// `excluded` are the headers that are not for the one who decides, such as those that may hold a key.
    pub(super) fn authorise(
        self,
        url: Uri,
        head: &request::Parts,
        excluded: &[HeaderName],
    ) -> impl Future<Output = Result<HeaderMap, Response<Bytes>>> + Send + use<> {
        let question = question(head, excluded);
        async move {
            match self.send(url, question).await {
                Ok(response) if response.status().is_success() => Ok(response.into_parts().0.headers),
                Ok(response) if response.status().is_client_error() => Err(refused(response)),
                Ok(response) => {
                    tracing::warn!(status = response.status().as_u16(), "authorise: no answer; refused");
                    Err(problem::AUTHORISE_UNAVAILABLE.response())
                }
                Err(error) => {
                    tracing::warn!(%error, "authorise: nobody answers; refused");
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

/// The caller's name in an answer. Empty where there is none, or more than one.
pub(super) fn principal_in(answer: &HeaderMap, header: &HeaderName) -> Vec<u8> {
    let mut lines = answer.get_all(header).iter().map(HeaderValue::as_bytes);
    match (lines.next(), lines.next()) {
        (Some(name), None) if !name.is_empty() => name.to_vec(),
        _ => {
            tracing::warn!(%header, "authorise: the answer does not name the caller; refused");
            Vec::new()
        }
    }
}

/// The caller's head, without what belongs to a body or a connection, and without what is left out.
fn question(head: &request::Parts, excluded: &[HeaderName]) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::default());
    let named: Vec<&str> = head
        .headers
        .get_all(http::header::CONNECTION)
        .into_iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','))
        .map(str::trim)
        .collect();
    let is_asked = |name: &HeaderName| {
        !NOT_FORWARDED.contains(&name.as_str())
            && !excluded.contains(name)
            && !named.iter().any(|of| name.as_str().eq_ignore_ascii_case(of))
    };
    let headers = request.headers_mut();
    for (name, value) in head.headers.iter().filter(|(name, _)| is_asked(name)) {
        headers.append(name, value.clone());
    }
    // Whoever sends these from outside makes them up.
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

/// What the caller gets to read: the status, the words and the way to authenticate.
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
