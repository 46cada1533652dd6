//! The counters and the configuration of the process.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use hapax::observe;
use hapax_core::Stats;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::failure::Failure;
use crate::listener::Shared;
use crate::openapi;

/// A large store takes a while to count, so a count is reused for this long.
const COUNT_VALID_FOR: Duration = Duration::from_secs(5);

/// The last count and its time.
pub(crate) type Counted = Option<(Instant, Stats)>;

/// Counters of the process.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct StatsDocument {
    /// Records in the store by state.
    pub(crate) records: RecordCounts,
    /// The store.
    pub(crate) store: StoreDocument,
    /// Requests of this process since its start, by outcome.
    pub(crate) requests: BTreeMap<String, u64>,
    /// Runs of this process at this moment.
    pub(crate) in_progress: u64,
    /// Duplicates of this process that are waiting for a result.
    pub(crate) waiters: u64,
    /// Failed store calls of this process since its start.
    pub(crate) store_errors: u64,
    /// The uptime of the process.
    pub(crate) uptime_ms: u64,
    /// The version of the program.
    pub(crate) version: String,
}

/// Records by state.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct RecordCounts {
    /// Claims with a valid lease.
    pub(crate) in_progress: u64,
    /// Pinned successes.
    pub(crate) completed: u64,
    /// Pinned errors.
    pub(crate) failed: u64,
    /// Records whose operation may have happened.
    pub(crate) uncertain: u64,
    /// Tombstones.
    pub(crate) released: u64,
    /// The size of the store.
    pub(crate) bytes: u64,
}

/// The store and its guarantee.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct StoreDocument {
    /// Its kind.
    pub(crate) kind: String,
    /// The strongest guarantee with the settings of the server.
    pub(crate) promise: String,
    /// Warnings about the settings of the server.
    pub(crate) warnings: Vec<String>,
}

impl From<Stats> for RecordCounts {
    fn from(stats: Stats) -> Self {
        let Stats { in_progress, completed, failed, uncertain, released, bytes, .. } = stats;
        Self { in_progress, completed, failed, uncertain, released, bytes }
    }
}

/// Count records and requests
#[utoipa::path(get, path = "/api/v1/stats", tag = "operations",
    responses((status = 200, description = "Counts; of records at most a few seconds old", body = StatsDocument),
        (status = 401, response = openapi::NoToken), (status = 503, response = openapi::Unavailable)))]
pub(crate) async fn stats_route(State(shared): State<Arc<Shared>>) -> Result<Json<StatsDocument>, Failure> {
    stats(&shared).await.map(Json)
}

/// Show the effective configuration
///
/// As it is in effect, with defaults, without secrets.
#[utoipa::path(get, path = "/api/v1/config", tag = "operations",
    responses((status = 200, description = "The configuration", body = Value),
        (status = 401, response = openapi::NoToken)))]
pub(crate) async fn config_route(State(shared): State<Arc<Shared>>) -> Json<Value> {
    Json(config(&shared))
}

/// The counters of the process.
pub(crate) async fn stats(shared: &Shared) -> Result<StatsDocument, Failure> {
    let health = shared.hapax.store().health().await;
    let health = health.map_err(|error| Failure::store(error, "the store is unhealthy"))?;
    let records = count(shared).await?;
    let sample = shared.samples.read(&shared.metrics);
    let whole = |number: f64| number.max(0.0) as u64;
    Ok(StatsDocument {
        records: records.into(),
        store: StoreDocument {
            kind: health.store.to_owned(),
            promise: health.promise.words().to_owned(),
            warnings: health.warnings,
        },
        requests: sample.requests.iter().map(|(outcome, count)| (outcome.clone(), whole(*count))).collect(),
        in_progress: whole(sample.in_progress),
        waiters: whole(sample.waiters),
        store_errors: whole(sample.store_errors),
        uptime_ms: u64::try_from(shared.started.elapsed().as_millis()).unwrap_or(u64::MAX),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

/// Records by state, at most a few seconds old. Concurrent callers share one count.
pub(crate) async fn count(shared: &Shared) -> Result<Stats, Failure> {
    let mut counted = shared.counted.lock().await;
    if let Some((at, stats)) = *counted
        && at.elapsed() < COUNT_VALID_FOR
    {
        return Ok(stats);
    }
    let stats = shared.records.stats().await?;
    metrics::gauge!(observe::UNCERTAIN).set(stats.uncertain as f64);
    *counted = Some((Instant::now(), stats));
    Ok(stats)
}

/// The configuration in effect.
pub(crate) fn config(shared: &Shared) -> Value {
    (shared.config)()
}
