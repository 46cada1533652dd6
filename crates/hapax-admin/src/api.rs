//! The JSON API under `/api/v1`: records, counts, the effective configuration and the audit log.
//!
//! Requests become calls of [`Records`](crate::records::Records) and of the audit log, their results become JSON. Keys are
//! accepted, hashed, and never returned; a payload is returned only for a single record and only on request.

pub(crate) mod changes;
pub(crate) mod filter;
pub(crate) mod status;

use std::sync::Arc;

use axum::Extension;
use axum::Json;
use axum::extract::State;
use axum::routing::{MethodRouter, get, post};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

pub use self::changes::{Change, FormatName, SettleChange, VerdictName};
pub(crate) use self::changes::{delete, release, settle};
pub(crate) use self::filter::ListQuery;
pub use self::filter::{Filter, LIMIT_MAX};
pub(crate) use self::status::{config, stats};
use super::audit::{Action, Entry};
use super::auth::Actor;
use super::extract::{Id, JsonBody, QueryParams};
use super::listener::Shared;
use crate::failure::Failure;
use crate::view::{Document, PageView, Payload};

/// The most audit entries of one page.
const AUDIT_LIMIT_MAX: u32 = 500;

/// The paths of the API with their handlers.
pub(crate) fn routes() -> Vec<(&'static str, MethodRouter<Arc<Shared>>)> {
    vec![
        ("/api/v1/records", get(list)),
        ("/api/v1/records/search", post(search)),
        ("/api/v1/records/{id}", get(show)),
        ("/api/v1/records/{id}/settle", post(changes::settle_route)),
        ("/api/v1/records/{id}/release", post(changes::release_route)),
        ("/api/v1/records/{id}/delete", post(changes::delete_route)),
        ("/api/v1/stats", get(status::stats_route)),
        ("/api/v1/config", get(status::config_route)),
        ("/api/v1/audit", get(audit)),
    ]
}

/// List records, newest first
#[utoipa::path(get, path = "/api/v1/records", tag = "records", params(ListQuery),
    responses((status = 200, description = "One page, without payloads", body = PageView),
        (status = 400, response = super::openapi::BadInput), (status = 401, response = super::openapi::NoToken),
        (status = 503, response = super::openapi::Unavailable)))]
pub(crate) async fn list(
    State(shared): State<Arc<Shared>>,
    QueryParams(query): QueryParams<ListQuery>,
) -> Result<Json<PageView>, Failure> {
    shared.records.page(&Filter::from(query).query()?).await.map(Json)
}

/// Search records, also by their key
///
/// The key is hashed here. It is in the body, so that no log of URLs contains it.
#[utoipa::path(post, path = "/api/v1/records/search", tag = "records", request_body = Filter,
    responses((status = 200, description = "One page, without payloads", body = PageView),
        (status = 400, response = super::openapi::BadInput), (status = 401, response = super::openapi::NoToken),
        (status = 403, response = super::openapi::Forged), (status = 413, response = super::openapi::TooLarge),
        (status = 503, response = super::openapi::Unavailable)))]
pub(crate) async fn search(
    State(shared): State<Arc<Shared>>,
    JsonBody(filter): JsonBody<Filter>,
) -> Result<Json<PageView>, Failure> {
    shared.records.page(&filter.query()?).await.map(Json)
}

/// The parts of a record to return.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ShowQuery {
    /// Return the stored result too. It may be confidential, so this is written to the audit log.
    #[serde(default)]
    pub(crate) payload: Option<bool>,
}

/// Show one record
#[utoipa::path(get, path = "/api/v1/records/{id}", tag = "records", params(filter::RecordPath, ShowQuery),
    responses((status = 200, description = "The record", body = Document),
        (status = 400, response = super::openapi::BadInput), (status = 401, response = super::openapi::NoToken),
        (status = 404, response = super::openapi::NoRecord), (status = 409, response = super::openapi::Conflict),
        (status = 503, response = super::openapi::Unavailable)))]
pub(crate) async fn show(
    State(shared): State<Arc<Shared>>,
    Extension(actor): Extension<Actor>,
    Id(id): Id,
    QueryParams(query): QueryParams<ShowQuery>,
) -> Result<Json<Document>, Failure> {
    read_record(&shared, actor, id, query.payload.unwrap_or(false)).await.map(Json)
}

/// One record. A request for the payload is written to the audit log first.
pub(crate) async fn read_record(
    shared: &Arc<Shared>,
    actor: Actor,
    id: hapax_core::RecordId,
    with_payload: bool,
) -> Result<Document, Failure> {
    if !with_payload {
        return shared.document(&id, Payload::Hidden).await;
    }
    let reader = shared.clone();
    let read = async move { reader.document(&id, Payload::Shown).await };
    changes::audited(shared, actor, Action::ShowPayload, id, None, read).await
}

/// A page of the audit log to return.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AuditQuery {
    /// The most entries.
    #[param(minimum = 1, maximum = 500, default = 100)]
    limit: Option<u32>,
    /// Only entries before the one with this number.
    #[param(minimum = 0, maximum = 9007199254740991_u64)]
    before: Option<u64>,
}

/// Entries of the audit log.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct AuditPage {
    /// The entries, newest first.
    pub(crate) entries: Vec<Entry>,
    /// The `before` of the next page.
    #[schema(required)]
    pub(crate) next: Option<u64>,
}

/// Read the audit log, newest first
///
/// The latest entries. The whole log is the file `audit.jsonl` beside the store.
#[utoipa::path(get, path = "/api/v1/audit", tag = "operations", params(AuditQuery),
    responses((status = 200, description = "Entries", body = AuditPage),
        (status = 400, response = super::openapi::BadInput), (status = 401, response = super::openapi::NoToken)))]
pub(crate) async fn audit(
    State(shared): State<Arc<Shared>>,
    QueryParams(query): QueryParams<AuditQuery>,
) -> Result<Json<AuditPage>, Failure> {
    let limit = filter::within("limit", query.limit.unwrap_or(100), AUDIT_LIMIT_MAX)?;
    let before = query.before.map(|number| filter::whole("before", number)).transpose()?;
    Ok(Json(audit_page(&shared, before, limit)))
}

/// A page of the audit log.
pub(crate) fn audit_page(shared: &Shared, before: Option<u64>, limit: usize) -> AuditPage {
    let mut entries = shared.audit.entries(before, limit + 1);
    let next = (entries.len() > limit).then(|| entries[limit - 1].number);
    entries.truncate(limit);
    AuditPage { entries, next }
}
