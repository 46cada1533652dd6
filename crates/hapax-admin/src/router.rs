//! The routes of the listener and their middleware.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use hapax_core::StoreErrorKind;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderName, HeaderValue, Uri};

use super::listener::Shared;
use super::{api, auth, health, openapi};
use crate::console;
use crate::failure::{Code, Failure};

/// No resources of other origins, no inline scripts and styles, no frames.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// `same-origin` instead of `no-referrer`, which would remove the origin of forms.
const HEADERS: [(HeaderName, &str); 6] = [
    (CONTENT_SECURITY_POLICY, CONTENT_POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    (REFERRER_POLICY, "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

const HEALTHZ: &str = "/healthz";
const READYZ: &str = "/readyz";

/// Probes: without a Host check, as a platform may use any host name and the responses are not confidential.
fn probes() -> Vec<(&'static str, MethodRouter<Arc<Shared>>)> {
    vec![(HEALTHZ, get(health::healthz)), (READYZ, get(health::readyz))]
}

/// Whether this is the path of a probe.
pub(super) fn is_probe(path: &str) -> bool {
    matches!(path, HEALTHZ | READYZ)
}

/// Paths without authentication.
fn open() -> Vec<(&'static str, MethodRouter<Arc<Shared>>)> {
    vec![("/metrics", get(health::metrics)), ("/openapi.json", get(openapi::document))]
}

/// The paths that the description must contain.
#[cfg(test)]
pub(super) fn described() -> Vec<&'static str> {
    let all = [probes(), open(), api::routes()].into_iter().flatten();
    all.map(|(path, _)| path).collect()
}

/// All routes with their middleware.
pub(super) fn router(shared: Arc<Shared>) -> Router {
    let require_token = middleware::from_fn_with_state(shared.clone(), auth::require_token);
    let require_login = middleware::from_fn_with_state(shared.clone(), auth::require_login);
    Router::new()
        .merge(routed(api::routes()).route_layer(require_token))
        .merge(routed(console::routes()).route_layer(require_login))
        .merge(routed(open()))
        .merge(routed(console::open_routes()))
        .fallback(unknown_path)
        .layer(middleware::from_fn_with_state(shared.clone(), auth::check_host))
        .merge(routed(probes()))
        .method_not_allowed_fallback(method_refused)
        .layer(middleware::from_fn_with_state(shared.clone(), limit_time))
        .layer(middleware::from_fn(set_security_headers))
        .with_state(shared)
}

fn routed(routes: Vec<(&'static str, MethodRouter<Arc<Shared>>)>) -> Router<Arc<Shared>> {
    routes.into_iter().fold(Router::new(), |router, (path, route)| router.route(path, route))
}

async fn unknown_path(uri: Uri) -> Response {
    let failure = Failure::new(Code::RouteMissing, "the path is unknown")
        .hint("/openapi.json lists every path of the API");
    let refused = failure.into_response();
    if uri.path().starts_with("/api/") { refused } else { console::as_page(refused) }
}

async fn method_refused() -> Failure {
    Failure::new(Code::MethodRefused, "the path does not support this method")
}

/// Limits the time of a request.
async fn limit_time(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let is_change = !request.method().is_safe();
    match tokio::time::timeout(shared.options.request_time.0, next.run(request)).await {
        Ok(response) => response,
        Err(_) if is_change => Failure::new(
            Code::Store(StoreErrorKind::Unknown),
            "the request timed out; a change that has begun continues",
        )
        .hint("check the record and the audit log before repeating it")
        .into_response(),
        Err(_) => Failure::new(Code::Store(StoreErrorKind::Unavailable), "the request timed out")
            .hint("check whether the store is healthy: /readyz")
            .into_response(),
    }
}

async fn set_security_headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}
