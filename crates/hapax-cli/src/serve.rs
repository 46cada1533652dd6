//! The sidecar: its parts put together, and how it ends.
//!
//! | file | what it owns |
//! |---|---|
//! | `serve/routes.rs` | the layer in force, and how another takes its place |
//! | `serve/told.rs` | what the service behind is told about an operation |
//! | `serve/ask.rs` | the questions to `reconcile` and `authorise` URLs |
//! | `serve/request_id.rs` | the id that every request has |
//! | `serve/banner.rs` | what is printed at the start |
//!
//! How bytes come and go is the business of others: here is no HTTP.

mod ask;
mod banner;
mod plain;
mod request_id;
mod routes;
mod told;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hapax::{Hapax, Keeper};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use self::ask::Asker;
use self::banner::Banner;
use self::plain::{Admin, Forward, Listener};
use self::routes::Routes;
use crate::config::{Config, Flags};
use crate::demo;
use crate::failure::{Code, Failure};
use crate::output::Output;
use crate::signals::{Asked, Signals};
use crate::stores::StoreUrl;
use crate::telemetry;

/// What a caller is refused with while nobody says whether it may go on; by the name of its page.
#[cfg(test)]
pub(crate) const AUTHORISE_UNAVAILABLE: &str = ask::UNAVAILABLE;

/// How often the recorder of metrics tidies up.
const METRICS_UPKEEP: Duration = Duration::from_secs(5);

/// Serves until the process is asked to end.
pub(crate) async fn run(
    mut config: Config,
    flags: Flags,
    with_demo: bool,
    output: Output,
) -> Result<(), Failure> {
    let mut signals = Signals::new()?;
    let metrics = telemetry::metrics()?;
    let store = config.store.open_or_make()?;
    let hapax = hapax(&config, store);
    let demo = if with_demo { Some(demo::start().await?) } else { None };
    if let Some(demo) = &demo {
        config.upstream = vec![demo.url.clone()];
    }
    let forward = Forward::new(&config.upstream, &config.upstream_options)?;
    let asker = Asker::new(&config.limits)?;
    let listener = Listener::bind(config.listen, &config.transport, config.tls.as_ref()).await?;
    let operators = Admin::bind(&config.admin).await?;
    let banner = Banner {
        listen: listener.local_addr(),
        is_tls: config.tls.is_some(),
        admin: operators.as_ref().map(|operators| operators.local_addr()),
        token: operators.as_ref().and_then(|operators| operators.made_token()),
        demo: demo.as_ref().map(|demo| demo.url.clone()),
    };
    let (data_dir, admin_options, drain) = (data_dir(&config.store), config.admin.clone(), config.drain);
    let routes = Arc::new(Routes::new(hapax.clone(), forward, asker, config));
    banner.print(output)?;

    let (stop, stop_operators) = (CancellationToken::new(), CancellationToken::new());
    let is_ready = Arc::new(AtomicBool::new(true));
    let upkeep = tokio::spawn({
        let metrics = metrics.clone();
        async move {
            loop {
                tokio::time::sleep(METRICS_UPKEEP).await;
                metrics.run_upkeep();
            }
        }
    });
    let operators = operators.map(|operators| {
        let (routes, is_ready) = (routes.clone(), is_ready.clone());
        let admin = Admin {
            hapax: hapax.clone(),
            metrics,
            config: Arc::new(move || routes.config().document()),
            ready: Arc::new(move || is_ready.load(Ordering::Relaxed)),
            data_dir,
            options: admin_options,
        };
        tokio::spawn(operators.serve(admin, stop_operators.clone()))
    });
    let listener = Arc::new(listener);
    let serving = tokio::spawn({
        let (listener, routes, stop) = (listener.clone(), routes.clone(), stop.clone());
        async move { listener.serve(move || routes.current(), stop).await }
    });
    notify(&[sd_notify::NotifyState::Ready]);

    while signals.next().await == Asked::ToReload {
        routes.reload(&flags, with_demo);
        match listener.reload_tls() {
            Ok(()) => {}
            Err(failure) => tracing::error!("the certificate stays as it was: {}", failure.text()),
        }
    }
    notify(&[sd_notify::NotifyState::Stopping]);
    is_ready.store(false, Ordering::Relaxed);
    stop.cancel();
    let ended = end(&hapax, serving, drain, &mut signals).await;
    stop_operators.cancel();
    if let Some(operators) = operators {
        operators.abort();
    }
    upkeep.abort();
    ended
}

fn hapax(config: &Config, store: Arc<dyn hapax_core::Store>) -> Hapax {
    Hapax::builder(store)
        .store_timeout(config.store_options.timeout.0)
        .cache(config.store_options.cache_bytes)
        .waiters_max(config.limits.waiters_per_key_max, config.limits.waiters_in_all_max)
        .sweep(config.store_options.sweep.0.map(|every| every.0))
        .keeper(Keeper::OwnThread)
        .build()
}

/// Lets what has begun end: protected operations first, then whatever else is on a connection.
async fn end(
    hapax: &Hapax,
    serving: JoinHandle<()>,
    limit: Duration,
    signals: &mut Signals,
) -> Result<(), Failure> {
    tracing::info!(limit = ?limit, "asked to end: nothing new is taken");
    let abort = serving.abort_handle();
    let deadline = tokio::time::Instant::now() + limit;
    let drained = async {
        let drained = hapax.drain(limit).await;
        // A connection that outlives the limit carries nothing that is recorded.
        let _ = tokio::time::timeout_at(deadline, serving).await;
        drained
    };
    let drained = tokio::select! {
        drained = drained => drained,
        // Whoever asks a second time does not want to wait.
        () = signals.end() => hapax.drain(Duration::ZERO).await,
    };
    abort.abort();
    if drained.left > 0 {
        return Err(Failure::new(
            Code::DrainIncomplete,
            format!("{} operation(s) had not ended in time and become uncertain", drained.left),
        )
        .hint("find them with `hapax records list --state uncertain` and settle them"));
    }
    tracing::info!("ended");
    Ok(())
}

fn data_dir(store: &StoreUrl) -> Option<std::path::PathBuf> {
    match store {
        StoreUrl::File(directory) => Some(directory.clone()),
        StoreUrl::Memory => None,
    }
}

/// Tells systemd, where it wants to know.
fn notify(state: &[sd_notify::NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::debug!(%error, "the service manager was not told");
    }
}
