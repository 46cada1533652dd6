//! The sidecar: its parts put together, and how it ends.
//!
//! | file | what it owns |
//! |---|---|
//! | `serve/routes.rs` | the layer in force, and how another takes its place |
//! | `serve/promise.rs` | the promise in force, told at the start |
//! | `serve/protection.rs` | what a reload takes away |
//! | `serve/paths.rs` | which paths are refused because an origin could take them for others |
//! | `serve/operation_headers.rs` | the header fields that name the operation and the attempt to the upstream |
//! | `serve/access_log.rs` | the duration of each request, and its line in the access log |
//! | `serve/callouts.rs` | callouts to `reconcile` and `authorise` URLs |
//! | `serve/banner.rs` | what is printed at the start |
//! | `serve/shutdown.rs` | the deadline of a graceful shutdown |
//!
//! How bytes come and go is the business of others: here is no HTTP.

mod access_log;
mod banner;
mod callouts;
mod operation_headers;
mod paths;
mod promise;
mod protection;
mod routes;
mod shutdown;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hapax::Hapax;
use hapax_core::Promise;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use self::access_log::AccessLogger;
use self::banner::Banner;
use self::callouts::Callouts;
use self::routes::{Parts, Routes};
use self::shutdown::ShutdownDeadline;
use crate::admin::{Admin, AdminListener, LocalAccess};
use crate::config::{Config, Flags};
use crate::demo::{self, Demo};
use crate::failure::{Code, Failure};
use crate::output::Output;
use crate::proxy::{self, Listener, UpstreamService, WorkerThreads};
use crate::signals::{ProcessSignal, Signals};
use crate::telemetry;
use crate::trace::Tracing;

/// How often the recorder of metrics tidies up.
const METRICS_UPKEEP: Duration = Duration::from_secs(5);

/// Serves until the process is asked to end.
pub(crate) async fn run(
    config: Config,
    flags: Flags,
    with_demo: bool,
    output: Output,
) -> Result<(), Failure> {
    let signals = Signals::new()?;
    let demo = if with_demo { Some(demo::start().await?) } else { None };
    let (config, flags) = match &demo {
        Some(demo) => demo.behind(config, flags),
        None => (config, flags),
    };
    let sidecar = Sidecar::assemble(config).await?;
    sidecar.banner(demo).print(output)?;
    sidecar.serve(&flags, signals).await
}

/// All parts, bound to their addresses and not yet serving.
struct Sidecar {
    hapax: Hapax,
    /// What the store promised at the start.
    promise: Option<Promise>,
    routes: Arc<Routes>,
    listener: Arc<Listener>,
    threads: WorkerThreads,
    operators: Option<AdminListener>,
    /// Removed when the process ends.
    local_access: Option<LocalAccess>,
    metrics: PrometheusHandle,
    tracing: Option<Tracing>,
}

impl Sidecar {
    async fn assemble(config: Config) -> Result<Self, Failure> {
        let metrics = telemetry::metrics()?;
        for warning in config.warnings().into_iter().chain(config.risks()) {
            tracing::warn!("{warning}");
        }
        let store = config.store.open_or_create().await?;
        let promise = promise::tell(&config.store, &*store).await;
        let hapax = hapax(&config, store);
        let forward = UpstreamService::new(&config.upstream, &config.upstream_options)?;
        let callouts = Callouts::new(&config.limits);
        let listener = proxy::bind(config.listen, &config.transport, config.tls.as_ref()).await?;
        let operators = AdminListener::bind(&config.admin, config.audit_dir()).await?;
        let local_access = operators.as_ref().zip(config.store.directory());
        let local_access = local_access.and_then(|(operators, directory)| operators.publish(directory));
        let tracing = Tracing::start(&config.trace)?;
        let threads = WorkerThreads::start()
            .map_err(|error| Failure::new(Code::Failed, "cannot start").because(error))?;
        let parts = Parts {
            hapax: hapax.clone(),
            forward,
            callouts,
            tracing: tracing.clone(),
            access_logger: AccessLogger::new(config.log.requests),
        };
        let routes = Arc::new(Routes::new(parts, config));
        let listener = Arc::new(listener);
        Ok(Self { hapax, promise, routes, listener, threads, operators, local_access, metrics, tracing })
    }

    fn banner(&self, demo: Option<Demo>) -> Banner {
        Banner {
            listen: self.listener.local_addr(),
            is_tls: self.routes.config().tls.is_some(),
            admin: self.operators.as_ref().map(AdminListener::local_addr),
            token: self.operators.as_ref().and_then(AdminListener::made_token).map(str::to_owned),
            demo: demo.map(|demo| demo.url),
            promise: self.promise,
        }
    }

    async fn serve(self, flags: &Flags, mut signals: Signals) -> Result<(), Failure> {
        let (stop, stop_operators) = (CancellationToken::new(), CancellationToken::new());
        let is_ready = Arc::new(AtomicBool::new(true));
        let upkeep = tokio::spawn(upkeep(self.metrics.clone()));
        let operators = self.operators.map(|operators| {
            let admin = admin(&self.hapax, &self.routes, self.metrics, is_ready.clone());
            let stop = stop_operators.clone();
            tokio::spawn(async move {
                if let Err(failure) = operators.serve(admin, stop).await {
                    tracing::error!("operators are not served any more: {}", failure.text());
                }
            })
        });
        let serving = tokio::spawn({
            let (listener, service, stop) = (self.listener.clone(), self.routes.in_force(), stop.clone());
            let workers = self.threads.workers();
            async move { listener.serve(service, workers, stop).await }
        });
        notify(sd_notify::NotifyState::Ready);
        while signals.next().await == ProcessSignal::Reload {
            self.routes.reload(flags);
            if let Err(error) = self.listener.reload_tls() {
                tracing::error!("the certificate stays as it was: {}", Failure::from(error).text());
            }
        }
        notify(sd_notify::NotifyState::Stopping);
        is_ready.store(false, Ordering::Relaxed);
        // First, so that requests which the listener gives up are told why.
        self.hapax.drain(Duration::ZERO).await;
        stop.cancel();
        let config = self.routes.config();
        tracing::info!(limit = ?config.drain, "asked to end: nothing new is taken");
        let deadline = ShutdownDeadline::new(config.drain, async move { signals.shutdown().await });
        let ended = end(&self.hapax, serving, &deadline, &flags.naming()).await;
        if let Some(tracing) = self.tracing {
            let _cut_short =
                deadline.limit(tracing.end(deadline.remaining().min(config.trace.timeout.0))).await;
        }
        // Operators see the end of it, and what they began is written down to its end.
        stop_operators.cancel();
        if let Some(mut operators) = operators
            && deadline.limit(&mut operators).await.is_none()
        {
            operators.abort();
            tracing::warn!("operators' requests had not ended in time; the audit log tells which changes");
        }
        // While the store is still owned: its next owner may write a file of its own.
        drop(self.local_access);
        upkeep.abort();
        ended
    }
}

fn hapax(config: &Config, store: Arc<dyn hapax_core::Store>) -> Hapax {
    Hapax::builder(store)
        .store_timeout(config.store_options.timeout.0)
        .cache(config.store_options.cache_bytes)
        .waiters_max(config.limits.waiters_per_key_max, config.limits.waiters_in_all_max)
        .sweep(config.store_options.sweep.0.map(|every| every.0))
        .build()
}

/// What operators are shown.
fn admin(hapax: &Hapax, routes: &Arc<Routes>, metrics: PrometheusHandle, is_ready: Arc<AtomicBool>) -> Admin {
    let config = routes.config();
    let (shown, keeping) = (routes.clone(), routes.clone());
    Admin {
        hapax: hapax.clone(),
        metrics,
        config: Arc::new(move || shown.config().document()),
        retention: Arc::new(move |operation| keeping.retention_of(operation)),
        ready: Arc::new(move || is_ready.load(Ordering::Relaxed)),
        data_dir: config.store.directory().map(ToOwned::to_owned),
    }
}

async fn upkeep(metrics: PrometheusHandle) {
    loop {
        tokio::time::sleep(METRICS_UPKEEP).await;
        metrics.run_upkeep();
    }
}

/// Lets what has begun end: protected operations first, then whatever else is on a connection.
async fn end(
    hapax: &Hapax,
    serving: JoinHandle<()>,
    deadline: &ShutdownDeadline,
    naming: &str,
) -> Result<(), Failure> {
    let abort = serving.abort_handle();
    let drained = match deadline.limit(hapax.drain(deadline.remaining())).await {
        Some(drained) => drained,
        None => hapax.drain(Duration::ZERO).await,
    };
    // A connection that outlives the limit carries nothing that is recorded.
    let _cut_short = deadline.limit(serving).await;
    abort.abort();
    if drained.left > 0 {
        return Err(Failure::new(
            Code::DrainIncomplete,
            format!("{} operation(s) had not ended in time and become uncertain", drained.left),
        )
        .hint(format!("find them with `hapax records list --state uncertain{naming}` and settle them")));
    }
    tracing::info!("ended");
    Ok(())
}

/// Tells systemd, where it wants to know.
fn notify(state: sd_notify::NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::debug!(%error, "the service manager was not told");
    }
}
