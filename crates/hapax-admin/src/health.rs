//! Liveness (`/healthz`), readiness (`/readyz`) and metrics.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::listener::Shared;
use crate::metric_names::READY;

/// The default timeout of a Kubernetes probe is one second.
const STORE_TIME_MAX: Duration = Duration::from_millis(800);

/// The readiness of the process, with its checks.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Readiness {
    /// Whether every check passed.
    ready: bool,
    /// Every check.
    checks: Vec<Check>,
}

/// One check.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Check {
    /// `draining`, `store` or `disk`.
    name: &'static str,
    /// Whether it passed.
    ok: bool,
    /// The details.
    detail: String,
}

/// Liveness
///
/// Succeeds while the process can respond at all, also while it drains.
#[utoipa::path(get, path = "/healthz", tag = "health", security(()),
    responses((status = 200, description = "The process is alive", body = String, content_type = "text/plain")))]
pub(crate) async fn healthz() -> &'static str {
    "ok\n"
}

/// Readiness
///
/// The store accepts claims, the process is not draining, and the store's disk has free space.
#[utoipa::path(get, path = "/readyz", tag = "health", security(()),
    responses((status = 200, description = "Ready", body = Readiness),
        (status = 503, description = "Not ready; the checks say why", body = Readiness)))]
pub(crate) async fn readyz(State(shared): State<Arc<Shared>>) -> Response {
    let readiness = Readiness::of(&shared).await;
    let status = if readiness.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(readiness)).into_response()
}

impl Readiness {
    async fn of(shared: &Shared) -> Self {
        let checks = vec![draining((shared.ready)()), store(shared).await, disk(shared)];
        Self { ready: checks.iter().all(|check| check.ok), checks }
    }
}

/// Metrics for Prometheus
///
/// Every scrape checks the readiness.
#[utoipa::path(get, path = "/metrics", tag = "health", security(()),
    responses((status = 200, description = "The text format of Prometheus", body = String,
        content_type = "text/plain")))]
pub(crate) async fn metrics(State(shared): State<Arc<Shared>>) -> Response {
    let version = [(http::header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    let readiness = Readiness::of(&shared).await;
    metrics::gauge!(READY).set(if readiness.ready { 1.0 } else { 0.0 });
    (version, shared.metrics.render()).into_response()
}

fn draining(ready: bool) -> Check {
    let detail = if ready { "accepts requests" } else { "draining: finishes the requests in progress" };
    Check { name: "draining", ok: ready, detail: detail.to_owned() }
}

async fn store(shared: &Shared) -> Check {
    // Causes may contain paths and addresses, and this path needs no token, so they go to the log.
    let (ok, detail) = match tokio::time::timeout(STORE_TIME_MAX, shared.hapax.store().health()).await {
        Ok(Ok(health)) => (true, format!("{}: {}", health.store, health.promise.words())),
        Ok(Err(error)) => {
            tracing::warn!(%error, "the store is not ready");
            (false, format!("store-{}", error.kind().name().replace('_', "-")))
        }
        Err(_) => (false, "the store did not respond in time".to_owned()),
    };
    Check { name: "store", ok, detail }
}

fn disk(shared: &Shared) -> Check {
    let (ok, detail) = match shared.data_dir.as_deref().map(free_bytes) {
        None => (true, "the store has no disk on this machine".to_owned()),
        Some(Ok(free)) if free >= shared.options.disk_free_min => (true, "has room".to_owned()),
        Some(Ok(free)) => (false, format!("{free} bytes are free, fewer than disk_free_min")),
        Some(Err(error)) => {
            tracing::warn!(%error, "cannot read the free space of the store's disk");
            (false, "cannot be read".to_owned())
        }
    };
    Check { name: "disk", ok, detail }
}

/// The free bytes for unprivileged processes.
fn free_bytes(directory: &Path) -> std::io::Result<u64> {
    let found = rustix::fs::statvfs(directory)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}
