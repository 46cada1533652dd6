//! The sidecar: its assembly, reload and graceful shutdown.
//!
//! | file | contents |
//! |---|---|
//! | `serve/routes.rs` | the current layer, and its replacement by a reload |
//! | `serve/promise.rs` | the log line about the store's promise |
//! | `serve/protection.rs` | the protection that a reload removes |
//! | `serve/paths.rs` | the refusal of ambiguous paths |
//! | `serve/operation_headers.rs` | the header fields that name the operation and the attempt to the upstream |
//! | `serve/access_log.rs` | the duration of each request, and its line in the access log |
//! | `serve/callouts.rs` | callouts to `reconcile` and `authorise` URLs |
//! | `serve/banner.rs` | what is printed at the start |
//! | `serve/shutdown.rs` | the deadline of a graceful shutdown |

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
use hapax_admin::{Admin, AdminListener, LocalAccess};
use hapax_core::Promise;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use self::access_log::AccessLogger;
use self::banner::Banner;
use self::callouts::Callouts;
use self::routes::{Components, Routes};
use self::shutdown::ShutdownDeadline;
use crate::config::{Config, Flags};
use crate::demo::{self, Demo};
use crate::failure::{Code, Failure};
use crate::output::Output;
use crate::proxy::{self, Listener, UpstreamService, WorkerThreads};
use crate::signals::{ProcessSignal, Signals};
use crate::telemetry;
use crate::trace::Tracing;

/// The interval at which the metrics recorder drains its histograms.
const METRICS_UPKEEP: Duration = Duration::from_secs(5);

/// Serves until a shutdown signal.
pub(crate) async fn run(
    config: Config,
    flags: Flags,
    with_demo: bool,
    output: Output,
) -> Result<(), Failure> {
    let signals = Signals::new()?;
    let demo = if with_demo { Some(demo::start().await?) } else { None };
    let (config, flags) = match &demo {
        Some(demo) => demo.as_upstream_of(config, flags),
        None => (config, flags),
    };
    let sidecar = Sidecar::assemble(config).await?;
    sidecar.banner(demo).print(output)?;
    sidecar.serve(&flags, signals).await
}

/// The components, bound to their addresses and not yet serving.
struct Sidecar {
    hapax: Hapax,
    /// The store's promise at the start.
    promise: Option<Promise>,
    routes: Arc<Routes>,
    listener: Arc<Listener>,
    threads: WorkerThreads,
    admin_listener: Option<AdminListener>,
    /// Deleted at the end of the process.
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
        let promise = promise::log(&config.store, &*store).await;
        let hapax = hapax(&config, store);
        let forward = UpstreamService::new(&config.upstream, &config.upstream_options)?;
        let callouts = Callouts::new(&config.limits);
        let listener = proxy::bind(config.listen, &config.transport, config.tls.as_ref()).await?;
        let admin_listener = AdminListener::bind(&config.admin, config.audit_dir()).await?;
        let local_access = admin_listener.as_ref().zip(config.store.directory());
        let local_access =
            local_access.and_then(|(admin_listener, directory)| admin_listener.publish(directory));
        let tracing = Tracing::start(&config.trace)?;
        let threads = WorkerThreads::start()
            .map_err(|error| Failure::new(Code::Failed, "cannot start").because(error))?;
        let components = Components {
            hapax: hapax.clone(),
            forward,
            callouts,
            tracing: tracing.clone(),
            access_logger: AccessLogger::new(config.log.requests),
        };
        let routes = Arc::new(Routes::new(components, config));
        let listener = Arc::new(listener);
        Ok(Self { hapax, promise, routes, listener, threads, admin_listener, local_access, metrics, tracing })
    }

    fn banner(&self, demo: Option<Demo>) -> Banner {
        Banner {
            listen: self.listener.local_addr(),
            is_tls: self.routes.config().tls.is_some(),
            admin: self.admin_listener.as_ref().map(AdminListener::local_addr),
            token: self.admin_listener.as_ref().and_then(AdminListener::generated_token).map(str::to_owned),
            demo: demo.map(|demo| demo.url),
            promise: self.promise,
        }
    }

    async fn serve(self, flags: &Flags, mut signals: Signals) -> Result<(), Failure> {
        let (stop, stop_admin) = (CancellationToken::new(), CancellationToken::new());
        let is_ready = Arc::new(AtomicBool::new(true));
        let upkeep = tokio::spawn(upkeep(self.metrics.clone()));
        let admin_listener = self.admin_listener.map(|admin_listener| {
            let admin = admin(&self.hapax, &self.routes, self.metrics, is_ready.clone());
            let stop = stop_admin.clone();
            tokio::spawn(async move {
                if let Err(failure) = admin_listener.serve(admin, stop).await {
                    tracing::error!("the admin listener has stopped: {}", failure.text());
                }
            })
        });
        let serving = tokio::spawn({
            let (listener, service, stop) = (self.listener.clone(), self.routes.service(), stop.clone());
            let workers = self.threads.workers();
            async move { listener.serve(service, workers, stop).await }
        });
        notify(sd_notify::NotifyState::Ready);
        while signals.next().await == ProcessSignal::Reload {
            self.routes.reload(flags);
            if let Err(error) = self.listener.reload_tls() {
                tracing::error!(
                    "the certificate cannot be reloaded; the old one stays in use: {}",
                    proxy::setup_failure(error).text()
                );
            }
        }
        notify(sd_notify::NotifyState::Stopping);
        is_ready.store(false, Ordering::Relaxed);
        // Before the listener stops, so that the requests which it aborts get a problem document.
        self.hapax.drain(Duration::ZERO).await;
        stop.cancel();
        let config = self.routes.config();
        tracing::info!(limit = ?config.drain, "shutdown requested; draining");
        let deadline = ShutdownDeadline::new(config.drain, async move { signals.shutdown().await });
        let ended = end(&self.hapax, serving, &deadline, &flags.store_flags()).await;
        if let Some(tracing) = self.tracing {
            let _cut_short =
                deadline.limit(tracing.end(deadline.remaining().min(config.trace.timeout.0))).await;
        }
        // The admin listener stops last: operators see the shutdown, and changes in progress reach the audit log.
        stop_admin.cancel();
        if let Some(mut admin_listener) = admin_listener
            && deadline.limit(&mut admin_listener).await.is_none()
        {
            admin_listener.abort();
            tracing::warn!(
                "admin requests were aborted at the shutdown deadline; the audit log has their changes"
            );
        }
        // Before the store is released: its next owner may write this file.
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

/// The state that the admin listener shows.
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

/// Waits for protected operations, then for all other traffic.
async fn end(
    hapax: &Hapax,
    serving: JoinHandle<()>,
    deadline: &ShutdownDeadline,
    store_flags: &str,
) -> Result<(), Failure> {
    let abort = serving.abort_handle();
    let drained = match deadline.limit(hapax.drain(deadline.remaining())).await {
        Some(drained) => drained,
        None => hapax.drain(Duration::ZERO).await,
    };
    // Connections that are still open have no operation to record.
    let _cut_short = deadline.limit(serving).await;
    abort.abort();
    if drained.left > 0 {
        return Err(Failure::new(
            Code::DrainIncomplete,
            format!("{} operation(s) did not finish in time and become uncertain", drained.left),
        )
        .hint(format!(
            "find them with `hapax records list --state uncertain{store_flags}` and settle them"
        )));
    }
    tracing::info!("shutdown complete");
    Ok(())
}

/// Notifies systemd, if it manages this process.
fn notify(state: sd_notify::NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::debug!(%error, "cannot notify the service manager");
    }
}
