//! The listener: its parts, and the state that all requests share.

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

use crate::api::status::{self, Counted};
use crate::audit::Audit;
use crate::auth::Cookies;
use crate::failure::{Code, Failure};
use crate::host::Hosts;
use crate::local::LocalAccess;
use crate::options::{AdminListen, AdminOptions};
use crate::records::Records;
use crate::samples::{self, Samples};
use crate::token::Token;
use crate::view::{Document, Payload};
use crate::{connection, router};

/// What the listener serves.
pub struct Admin {
    /// The engine of the process, with its store.
    pub hapax: Hapax,
    /// The metrics for `/metrics` and the charts of the console.
    pub metrics: PrometheusHandle,
    /// The configuration in effect, without secrets.
    pub config: Arc<dyn Fn() -> Value + Send + Sync>,
    /// The retention of the results of an operation, by its route.
    pub retention: Arc<dyn Fn(&str) -> Duration + Send + Sync>,
    /// Whether the process accepts requests: false while it drains.
    pub ready: Arc<dyn Fn() -> bool + Send + Sync>,
    /// The directory of the store, whose free space is checked.
    pub data_dir: Option<PathBuf>,
}

impl fmt::Debug for Admin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admin").field("data_dir", &self.data_dir).finish_non_exhaustive()
    }
}

/// The listener, bound and not yet serving.
#[derive(Debug)]
pub struct AdminListener {
    listener: TcpListener,
    address: SocketAddr,
    token: Token,
    is_token_generated: bool,
    local_token: Token,
    options: AdminOptions,
    audit: Audit,
}

impl AdminListener {
    /// Binds the listener, with its audit log in `audit_dir` or in memory. None if it is off.
    ///
    /// # Errors
    ///
    /// The address cannot be bound or is exposed without a token, or the audit log cannot be opened.
    pub async fn bind(options: &AdminOptions, audit_dir: Option<&Path>) -> Result<Option<Self>, Failure> {
        let AdminListen::At(address) = options.listen else { return Ok(None) };
        let configured = options.configured_token()?;
        if configured.is_none() && !address.ip().is_loopback() {
            return Err(Failure::new(
                Code::AdminExposed,
                format!(
                    "the admin listener at {address} is reachable from other machines and has no configured token"
                ),
            )
            .hint("set HAPAX_ADMIN_TOKEN or --admin-token-file, or listen on 127.0.0.1"));
        }
        let audit = Audit::open(audit_dir, options.audit_bytes_max)?;
        let failed =
            |error| Failure::new(Code::ListenFailed, format!("cannot listen on {address}")).because(error);
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let is_token_generated = configured.is_none();
        let token = configured.unwrap_or_else(Token::random);
        let (local_token, options) = (Token::random(), options.clone());
        Ok(Some(Self { listener, address, token, is_token_generated, local_token, options, audit }))
    }

    /// The local address.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// The token, if it was generated at this start and must be shown to the operator.
    pub fn generated_token(&self) -> Option<&str> {
        self.is_token_generated.then(|| self.token.reveal())
    }

    /// Writes the local access to this listener into the directory of the store, until the result is dropped.
    pub fn publish(&self, directory: &Path) -> Option<LocalAccess> {
        let published = LocalAccess::publish(directory, self.address, &self.local_token);
        let published = published.inspect_err(|error| {
            tracing::warn!(%error, "commands on this machine cannot find the admin listener by the store");
        });
        published.ok()
    }

    /// Serves until `stop`, then finishes the requests and changes in progress.
    ///
    /// # Errors
    ///
    /// A background task ended unexpectedly.
    pub async fn serve(self, admin: Admin, stop: CancellationToken) -> Result<(), Failure> {
        let shared = Arc::new(Shared::new(&self, admin));
        self.run(shared, stop).await
    }

    pub(crate) async fn run(self, shared: Arc<Shared>, stop: CancellationToken) -> Result<(), Failure> {
        let sampling = tokio::spawn(sample_repeatedly(shared.clone(), stop.clone()));
        let counting = tokio::spawn(count_repeatedly(shared.clone(), stop.clone()));
        connection::serve(self.listener, router::router(shared.clone()), &self.options, stop).await;
        shared.tasks.close();
        shared.tasks.wait().await;
        let failed = |error| {
            Failure::new(Code::Failed, "a background task of the admin listener ended unexpectedly")
                .because(error)
        };
        counting.await.map_err(failed)?;
        sampling.await.map_err(failed)
    }
}

/// The state that all requests share.
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
    /// The token of commands on this machine.
    pub(crate) local_token: Token,
    pub(crate) cookies: Cookies,
    pub(crate) audit: Audit,
    pub(crate) samples: Samples,
    pub(crate) hosts: Hosts,
    pub(crate) counted: tokio::sync::Mutex<Counted>,
    pub(crate) started: Instant,
    /// Changes, which continue when their clients disconnect.
    pub(crate) tasks: TaskTracker,
}

impl Shared {
    pub(crate) fn new(listener: &AdminListener, admin: Admin) -> Self {
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
            cookies: Cookies::new(listener.address.port()),
            token: listener.token.clone(),
            local_token: listener.local_token.clone(),
            hosts: Hosts::new(listener.address, &listener.options.hosts),
            samples: Samples::default(),
            counted: tokio::sync::Mutex::new(None),
            started: Instant::now(),
            tasks: TaskTracker::new(),
        }
    }

    /// One record, with the retention of a result that settles it.
    pub(crate) async fn document(&self, id: &RecordId, payload: Payload) -> Result<Document, Failure> {
        let mut document = self.records.show(id, payload).await?;
        if document.record.state() == State::Uncertain {
            let retention = (self.retention)(&document.record.scope.operation);
            document.settle_retention_ms = Some(u64::try_from(retention.as_millis()).unwrap_or(u64::MAX));
        }
        Ok(document)
    }
}

async fn sample_repeatedly(shared: Arc<Shared>, stop: CancellationToken) {
    let mut ticks = tokio::time::interval(samples::EVERY);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while stop.run_until_cancelled(ticks.tick()).await.is_some() {
        shared.samples.take(&shared.metrics, shared.started.elapsed());
    }
}

/// The shortest pause between two counts, so that counting does not saturate the store.
const COUNT_PAUSE_MIN: Duration = Duration::from_secs(1);

/// Counts records for the metrics, with a pause after each count.
async fn count_repeatedly(shared: Arc<Shared>, stop: CancellationToken) {
    let every = shared.options.count_every.0.max(COUNT_PAUSE_MIN);
    let counting = async {
        loop {
            if let Err(failure) = status::count(&shared).await {
                tracing::debug!("records cannot be counted: {}", failure.text());
            }
            tokio::time::sleep(every).await;
        }
    };
    let _stopped: Option<std::convert::Infallible> = stop.run_until_cancelled(counting).await;
}
