//! The stylesheet, the script and the icon, embedded in the binary.

use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};

pub(super) async fn style() -> Response {
    asset("text/css; charset=utf-8", include_str!("console.css"))
}

pub(super) async fn script() -> Response {
    asset("text/javascript; charset=utf-8", include_str!("console.js"))
}

pub(super) async fn icon() -> Response {
    asset("image/svg+xml", include_str!("icon.svg"))
}

/// Cached for a short time only: another version of the program has different assets under the same names.
fn asset(kind: &'static str, content: &'static str) -> Response {
    ([(CONTENT_TYPE, kind), (CACHE_CONTROL, "max-age=60")], content).into_response()
}
