//! The admin listener: health and metrics for machines, an API for programs, a console for people.
//!
//! It is a listener of its own, on loopback unless somebody says otherwise, and speaks plain HTTP/1.1.
//!
//! | path | needs | what it is |
//! |---|---|---|
//! | `/healthz`, `/readyz` | nothing | the process lives; it should get traffic |
//! | `/metrics`, `/openapi.json` | a Host that is ours | metrics for Prometheus; the API's description |
//! | `/api/v1/…` | the token, or the console's cookie | records, counts, configuration, audit log |
//! | everything else | the console's cookie | the console, with its login page and its assets in the open |
//!
//! A request passes, in this order: the connection's limits (`listen.rs`, `connection_slots.rs`), the Host check (`host.rs`), the token or
//! cookie and the guard against forged requests (`auth.rs`), then the API (`api.rs`) or the console
//! (`console.rs`). Both change records only through the [`Records`], and every change is written into the audit log
//! (`audit.rs`) before it is begun and after it has ended. Refusals are problem documents (`problem.rs`).
//!
//! It does not know what is proxied, nor how the process is set up: it is handed what it shows.

mod api;
mod audit;
mod auth;
mod connection_slots;
mod extract;
mod health;
mod host;
mod listen;
mod local;
mod openapi;
mod options;
mod problem;
mod query;
mod router;
mod samples;
#[cfg(test)]
pub(crate) mod showcase;
pub(crate) mod token;

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hapax::Hapax;
use hapax_core::{RecordId, State};
use metrics_exporter_prometheus::PrometheusHandle;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) use self::api::changes::{FormatName, REASON_CHARS_MAX};
pub(crate) use self::api::filter::LIMIT_MAX;
pub(crate) use self::api::status::StatsDocument;
pub(crate) use self::api::{
    Change, Filter, SettleChange, VerdictName, audit_page, config, delete, release, settle, shown, stats,
};
pub(crate) use self::audit::{Action, Entry};
pub(crate) use self::auth::{Actor, NAME_CHARS_MAX, OPERATOR, Peer, Via, fit_name, forged, is_own_page};
pub(crate) use self::extract::{Asked, Filled, Id};
pub(crate) use self::local::LocalAccess;
pub(crate) use self::options::{AdminListen, AdminOptions};
pub(crate) use self::problem::{Problem, status as status_of};
pub(crate) use self::query::query_value;
pub(crate) use self::samples::{Samples, Step};
pub(crate) use self::token::Token;
use crate::failure::{Code, Failure};
use crate::records::Records;
use crate::view::{Document, Payload};

/// What the listener shows and acts on.
pub(crate) struct Admin {
    /// The records, and whoever runs operations on them in this process.
    pub(crate) hapax: Hapax,
    /// What is shown under `/metrics` and in the console's charts.
    pub(crate) metrics: PrometheusHandle,
    /// The configuration in force, without secrets.
    pub(crate) config: Arc<dyn Fn() -> Value + Send + Sync>,
    /// How long the result of an operation is kept, by its route.
    pub(crate) retention: Arc<dyn Fn(&str) -> Duration + Send + Sync>,
    /// Whether the process takes requests, as far as it decides that itself: false while it drains.
    pub(crate) ready: Arc<dyn Fn() -> bool + Send + Sync>,
    /// The directory of the store, whose disk must have room.
    pub(crate) data_dir: Option<PathBuf>,
}

impl fmt::Debug for Admin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admin").field("data_dir", &self.data_dir).finish_non_exhaustive()
    }
}

/// The listener: bound, not yet serving.
#[derive(Debug)]
pub(crate) struct AdminListener {
    listener: TcpListener,
    address: SocketAddr,
    token: Token,
    is_token_made: bool,
    local_token: Token,
    options: AdminOptions,
    audit: audit::Audit,
}

impl AdminListener {
    /// Binds the listener, with its audit log in `audit_dir`, or in memory; none when it is off.
    pub(crate) async fn bind(
        options: &AdminOptions,
        audit_dir: Option<&Path>,
    ) -> Result<Option<Self>, Failure> {
        let AdminListen::At(address) = options.listen else { return Ok(None) };
        let chosen = options.chosen_token()?;
        if chosen.is_none() && !address.ip().is_loopback() {
            return Err(Failure::new(
                Code::AdminExposed,
                format!(
                    "the admin listener at {address} would be open to other machines without a token of yours"
                ),
            )
            .hint("set HAPAX_ADMIN_TOKEN or --admin-token-file, or listen on 127.0.0.1"));
        }
        let audit = audit::Audit::open(audit_dir, options.audit_bytes_max)?;
        let failed =
            |error| Failure::new(Code::ListenFailed, format!("cannot listen on {address}")).because(error);
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let is_token_made = chosen.is_none();
        let token = chosen.unwrap_or_else(Token::random);
        let (local_token, options) = (Token::random(), options.clone());
        Ok(Some(Self { listener, address, token, is_token_made, local_token, options, audit }))
    }

    /// Where it listens.
    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// The token, if it was made here and must be shown to whoever started the process.
    pub(crate) fn made_token(&self) -> Option<&str> {
        self.is_token_made.then(|| self.token.reveal())
    }

    /// Writes into the directory of the store how commands on this machine reach this listener, until the answer is
    /// dropped.
    pub(crate) fn publish(&self, directory: &Path) -> Option<LocalAccess> {
        let published = LocalAccess::publish(directory, self.address, &self.local_token);
        let told = published.inspect_err(|error| {
            tracing::warn!(%error, "commands beside this process cannot find its admin listener by themselves");
        });
        told.ok()
    }

    /// Serves until `stop`, then lets requests and changes finish that have begun.
    pub(crate) async fn serve(self, admin: Admin, stop: CancellationToken) -> Result<(), Failure> {
        let shared = Arc::new(Shared::new(&self, admin));
        self.run(shared, stop).await
    }

    async fn run(self, shared: Arc<Shared>, stop: CancellationToken) -> Result<(), Failure> {
        let sampling = tokio::spawn(sample_for_ever(shared.clone(), stop.clone()));
        let counting = tokio::spawn(count_for_ever(shared.clone(), stop.clone()));
        listen::serve(self.listener, router::router(shared.clone()), &self.options, stop).await;
        shared.tasks.close();
        shared.tasks.wait().await;
        let broke_off = |error| Failure::new(Code::Failed, "sampling broke off").because(error);
        counting.await.map_err(broke_off)?;
        sampling.await.map_err(broke_off)
    }
}

/// What every request can see.
pub(crate) struct Shared {
    pub(crate) records: Records,
    pub(crate) hapax: Hapax,
    pub(crate) metrics: PrometheusHandle,
    pub(crate) config: Arc<dyn Fn() -> Value + Send + Sync>,
    pub(crate) retention: Arc<dyn Fn(&str) -> Duration + Send + Sync>,
    pub(crate) ready: Arc<dyn Fn() -> bool + Send + Sync>,
    pub(crate) data_dir: Option<PathBuf>,
    pub(crate) options: AdminOptions,
    pub(crate) token: Token,
    /// That of commands on this machine.
    local_token: Token,
    pub(crate) cookies: auth::Cookies,
    pub(crate) audit: audit::Audit,
    pub(crate) samples: Samples,
    hosts: host::Hosts,
    counted: tokio::sync::Mutex<api::status::Counted>,
    started: Instant,
    /// Changes that go on when whoever asked for them hangs up.
    tasks: TaskTracker,
}

impl Shared {
    fn new(listener: &AdminListener, admin: Admin) -> Self {
        Self {
            records: Records::in_process(admin.hapax.clone()),
            hapax: admin.hapax,
            metrics: admin.metrics,
            config: admin.config,
            retention: admin.retention,
            ready: admin.ready,
            audit: listener.audit.clone(),
            data_dir: admin.data_dir,
            options: listener.options.clone(),
            cookies: auth::Cookies::new(listener.address.port()),
            token: listener.token.clone(),
            local_token: listener.local_token.clone(),
            hosts: host::Hosts::new(listener.address, &listener.options.hosts),
            samples: Samples::default(),
            counted: tokio::sync::Mutex::new(None),
            started: Instant::now(),
            tasks: TaskTracker::new(),
        }
    }

    /// One record, with how long a result is kept that settles it.
    pub(crate) async fn look(&self, id: &RecordId, payload: Payload) -> Result<Document, Failure> {
        let mut document = self.records.show(id, payload).await?;
        if document.record.state() == State::Uncertain {
            let retention = (self.retention)(&document.record.scope.operation);
            document.settle_retention_ms = Some(u64::try_from(retention.as_millis()).unwrap_or(u64::MAX));
        }
        Ok(document)
    }
}

async fn sample_for_ever(shared: Arc<Shared>, stop: CancellationToken) {
    let mut ticks = tokio::time::interval(samples::EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while stop.run_until_cancelled(ticks.tick()).await.is_some() {
        shared.samples.take(&shared.metrics, shared.started.elapsed());
    }
}

/// Less of a pause would keep the store busy with nothing else.
const COUNT_PAUSE_MIN: Duration = Duration::from_secs(1);

/// Counts records for the metrics. A count that takes long is followed by a pause all the same.
async fn count_for_ever(shared: Arc<Shared>, stop: CancellationToken) {
    let every = shared.options.count_every.0.max(COUNT_PAUSE_MIN);
    let counting = async {
        loop {
            if let Err(failure) = api::status::count(&shared).await {
                tracing::debug!("records cannot be counted: {}", failure.text());
            }
            tokio::time::sleep(every).await;
        }
    };
    let _stopped: Option<std::convert::Infallible> = stop.run_until_cancelled(counting).await;
}

#[cfg(test)]
pub(crate) mod tests;
