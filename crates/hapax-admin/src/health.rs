//! Whether the process lives (`/healthz`) and whether it should get traffic (`/readyz`).

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

/// A probe that waits longer has given up already: Kubernetes does so after a second, unless it is told otherwise.
const STORE_TIME_MAX: Duration = Duration::from_millis(800);

/// Whether the process should get traffic, and why not.
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
    /// What was found.
    detail: String,
}

/// The process lives
///
/// Answers as long as the process can answer at all, also while it drains.
#[utoipa::path(get, path = "/healthz", tag = "health", security(()),
    responses((status = 200, description = "The process lives", body = String, content_type = "text/plain")))]
pub(crate) async fn healthz() -> &'static str {
    "ok\n"
}

/// The process should get traffic
///
/// The store takes claims, the process is not draining, and there is room on the store's disk.
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
/// Whether the process is ready is found out for every scrape.
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
    let detail = if ready { "takes requests" } else { "draining: finishes what it began" };
    Check { name: "draining", ok: ready, detail: detail.to_owned() }
}

async fn store(shared: &Shared) -> Check {
    // Causes may hold paths and addresses, and nobody showed a token here: they go to the log.
    let (ok, detail) = match tokio::time::timeout(STORE_TIME_MAX, shared.hapax.store().health()).await {
        Ok(Ok(health)) => (true, format!("{}: {}", health.store, health.promise.words())),
        Ok(Err(error)) => {
            tracing::warn!(%error, "the store is not ready");
            (false, format!("store-{}", error.kind().name().replace('_', "-")))
        }
        Err(_) => (false, "the store did not answer in time".to_owned()),
    };
    Check { name: "store", ok, detail }
}

fn disk(shared: &Shared) -> Check {
    let (ok, detail) = match shared.data_dir.as_deref().map(free_bytes) {
        None => (true, "nothing is kept on a disk of this machine".to_owned()),
        Some(Ok(free)) if free >= shared.options.disk_free_min => (true, "has room".to_owned()),
        Some(Ok(free)) => (false, format!("{free} bytes are free, fewer than disk_free_min")),
        Some(Err(error)) => {
            tracing::warn!(%error, "the store's disk cannot be looked at");
            (false, "cannot be looked at".to_owned())
        }
    };
    Check { name: "disk", ok, detail }
}

/// Bytes that an ordinary process may still write.
fn free_bytes(directory: &Path) -> std::io::Result<u64> {
    let found = rustix::fs::statvfs(directory)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}
