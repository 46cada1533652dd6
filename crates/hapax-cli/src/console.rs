//! The console.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};

use crate::admin::Shared;
use crate::failure::Failure;

pub(crate) fn routes() -> Vec<(&'static str, MethodRouter<Arc<Shared>>)> {
    vec![("/", get(|| async { "hapax" }))]
}

pub(crate) fn open_routes() -> Vec<(&'static str, MethodRouter<Arc<Shared>>)> {
    Vec::new()
}

pub(crate) fn refusal(failure: &Failure) -> Response {
    crate::admin::status_of(failure.code()).into_response()
}
