//! The OpenAPI description, generated from the handlers. A test compares it with the routes.

use axum::Json;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityScheme};
use utoipa::{Modify, OpenApi, ToResponse};

use super::problem::Problem;
use super::{api, health};

/// The request is invalid.
#[derive(ToResponse)]
#[response(description = "The request is invalid", content_type = "application/problem+json")]
#[allow(dead_code, reason = "it describes a response")]
pub(crate) struct BadInput(Problem);

/// The token is missing or wrong.
#[derive(ToResponse)]
#[response(description = "The token is missing or wrong", content_type = "application/problem+json")]
#[allow(dead_code, reason = "it describes a response")]
pub(crate) struct NoToken(Problem);

/// The request comes from a page of another site.
#[derive(ToResponse)]
#[response(
    description = "The request comes from a page of another site",
    content_type = "application/problem+json"
)]
#[allow(dead_code, reason = "it describes a response")]
pub(crate) struct Forged(Problem);

/// The record does not exist.
#[derive(ToResponse)]
#[response(description = "The record does not exist", content_type = "application/problem+json")]
#[allow(dead_code, reason = "it describes a response")]
pub(crate) struct NoRecord(Problem);

/// The record has another state or version, or cannot be decoded.
#[derive(ToResponse)]
#[response(
    description = "The record has another state or version, or cannot be decoded",
    content_type = "application/problem+json"
)]
#[allow(dead_code, reason = "it describes a response")]
pub(crate) struct Conflict(Problem);

/// The body or the value is too large.
#[derive(ToResponse)]
#[response(description = "The body or the value is too large", content_type = "application/problem+json")]
#[allow(dead_code, reason = "it describes a response")]
pub(crate) struct TooLarge(Problem);

/// The store or the audit log is unavailable.
#[derive(ToResponse)]
#[response(
    description = "The store or the audit log is unavailable",
    content_type = "application/problem+json"
)]
#[allow(dead_code, reason = "it describes a response")]
pub(crate) struct Unavailable(Problem);

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Hapax admin API",
        description = "Records, counts, the effective configuration and the audit log of a running sidecar.",
    ),
    paths(
        api::list, api::search, api::show, api::audit,
        api::changes::settle_route, api::changes::release_route, api::changes::delete_route,
        api::status::stats_route, api::status::config_route,
        health::healthz, health::readyz, health::metrics, document,
    ),
    components(schemas(Problem), responses(BadInput, NoToken, Forged, NoRecord, Conflict, TooLarge, Unavailable)),
    modifiers(&Token),
    security(("token" = []), ("console" = [])),
)]
pub(crate) struct Description;

struct Token;

impl Modify for Token {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        let components = openapi.components.get_or_insert_default();
        components.add_security_scheme("token", SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)));
        let cookie = ApiKeyValue::with_description(
            "hapax_console_PORT",
            "Set by the console's login. A change also needs Sec-Fetch-Site or Origin to be the listener's own.",
        );
        components.add_security_scheme("console", SecurityScheme::ApiKey(ApiKey::Cookie(cookie)));
    }
}

/// This description
#[utoipa::path(get, path = "/openapi.json", tag = "health", security(()),
    responses((status = 200, description = "OpenAPI 3.1", body = serde_json::Value)))]
pub(crate) async fn document() -> Json<utoipa::openapi::OpenApi> {
    Json(Description::openapi())
}
