//! A listener for tests, on an ephemeral port and over a memory store.

mod records;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hapax::{Hapax, MemoryStore, observe};
use hapax_core::Store;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusRecorder};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use self::records::FUNCTION;
pub(crate) use self::records::{Filled, KEY, PAYLOAD, completed, failed, key, uncertain};
use crate::failure::Failure;
use crate::listener::Shared;
use crate::metric_names::{PASSED, REQUEST_SECONDS};
use crate::samples::Samples;
use crate::{Admin, AdminListen, AdminListener, AdminOptions, Token};

/// The token of the listeners.
pub(crate) const TOKEN: &str = "canary-token-0123456789";

const BUCKETS: [f64; 10] = [0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 1.0];

/// The retention of every route.
pub(crate) const RETENTION: Duration = Duration::from_secs(7 * 86_400);

/// The setup of a listener for tests.
pub(crate) struct Setup {
    pub(crate) options: AdminOptions,
    pub(crate) store: Arc<dyn Store>,
    /// The directory of the store and of the audit log.
    pub(crate) data_dir: Option<PathBuf>,
}

impl Default for Setup {
    fn default() -> Self {
        let options = AdminOptions {
            listen: AdminListen::At(([127, 0, 0, 1], 0).into()),
            token: Some(Token::new(TOKEN).unwrap()),
            ..AdminOptions::default()
        };
        Self { options, store: Arc::new(MemoryStore::new()), data_dir: None }
    }
}

/// A listener that serves until it is stopped.
pub(crate) struct TestListener {
    pub(crate) url: String,
    pub(crate) shared: Arc<Shared>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) recorder: PrometheusRecorder,
    is_ready: Arc<AtomicBool>,
    stop: CancellationToken,
    serving: JoinHandle<Result<(), Failure>>,
}

impl TestListener {
    /// A listener over an empty store.
    pub(crate) async fn start() -> Self {
        Self::with(Setup::default()).await
    }

    pub(crate) async fn with(setup: Setup) -> Self {
        let Setup { options, store, data_dir } = setup;
        let recorder = PrometheusBuilder::new().set_buckets(&BUCKETS).unwrap().build_recorder();
        let is_ready = Arc::new(AtomicBool::new(true));
        let ready = is_ready.clone();
        let listener = AdminListener::bind(&options, data_dir.as_deref()).await.unwrap().unwrap();
        let admin = Admin {
            hapax: Hapax::builder(store.clone()).sweep(None).build(),
            metrics: recorder.handle(),
            config: Arc::new(|| {
                json!({ "listen": "127.0.0.1:8080", "defaults": { "lease": "30s", "retention": "24h" },
                    "route": [{ "path": "/v1/payments/**", "key": "required" }] })
            }),
            retention: Arc::new(|_| RETENTION),
            ready: Arc::new(move || ready.load(Ordering::SeqCst)),
            data_dir,
        };
        let url = format!("http://{}", listener.local_addr());
        let shared = Arc::new(Shared::new(&listener, admin));
        let stop = CancellationToken::new();
        let serving = tokio::spawn(listener.run(shared.clone(), stop.clone()));
        Self { url, shared, store, recorder, is_ready, stop, serving }
    }

    /// Makes the process drain.
    pub(crate) fn drain(&self) {
        self.is_ready.store(false, Ordering::SeqCst);
    }

    /// Stops the listener and waits for its end.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.serving.await.unwrap().unwrap();
    }

    /// Writes one record of each state.
    pub(crate) async fn fill(&self) -> Filled {
        Filled::in_store(&*self.store).await
    }
}

impl TestListener {
    /// Writes many records and five minutes of metrics, for the browser tests.
    pub(crate) async fn fill_for_browser(&self) {
        let store = &*self.store;
        for number in 0..60 {
            completed(store, &format!("orders/{number}")).await;
        }
        for number in 0..12 {
            uncertain(store, &format!("payments/{number}")).await;
            failed(store, &format!("refunds/{number}")).await;
        }
        uncertain(store, FUNCTION).await;
        self.fill().await;
        for step in 0..Samples::steps_max() + 1 {
            metrics::with_local_recorder(&self.recorder, || record_traffic(step as f64));
            self.shared.samples.take(&self.shared.metrics, Duration::ZERO);
        }
    }
}

/// Records the metrics of varying traffic with an incident near the end.
fn record_traffic(step: f64) {
    let wave = 1.0 + 0.35 * (step / 17.0).sin() + 0.1 * (step / 3.0).cos();
    let is_incident = (105.0..125.0).contains(&step);
    let count = |outcome: &'static str, number: f64| {
        metrics::counter!(observe::REQUESTS, "surface" => "http", "route" => "/v1/**", "outcome" => outcome)
            .increment(number as u64);
    };
    count("ran", 240.0 * wave * if is_incident { 0.6 } else { 1.0 });
    count("replayed", 60.0 * wave * if is_incident { 2.5 } else { 1.0 });
    count("in_progress", 10.0 * wave * if is_incident { 4.0 } else { 1.0 });
    count("mismatch", 4.0 * wave);
    count("uncertain", if is_incident { 30.0 } else { 0.0 });
    count("store_error", if is_incident { 12.0 } else { 1.0 });
    for part in 0..20 {
        let slow = if is_incident { 40.0 } else { 1.0 };
        let seconds = 0.0004 * slow * wave * (1.0 + f64::from(part) / 10.0);
        metrics::histogram!(REQUEST_SECONDS, "outcome" => "ran").record(seconds * 9.0);
        metrics::histogram!(REQUEST_SECONDS, "outcome" => PASSED).record(seconds * 5.0);
        metrics::histogram!(observe::CLAIM_SECONDS).record(seconds);
        metrics::histogram!(observe::COMPLETE_SECONDS).record(seconds * 1.6);
    }
    metrics::gauge!(observe::IN_PROGRESS).set((9.0 * wave * if is_incident { 3.0 } else { 1.0 }).round());
    metrics::gauge!(observe::UNCERTAIN).set(if step < 105.0 { 2.0 } else { (step - 103.0).min(14.0) });
}
