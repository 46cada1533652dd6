//! An admin listener for tests: on a port of its own, over a memory store with a record in every state.

#[path = "../../../hapax-admin/src/test_listener/records.rs"]
pub(crate) mod records;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hapax::{Hapax, MemoryStore};
use hapax_admin::{Admin, AdminListener, AdminOptions, Token};
use hapax_core::{Lookup, RecordId, State, Store};
use metrics_exporter_prometheus::PrometheusBuilder;
use serde_json::json;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use self::records::Filled;
use super::AdminClient;
use crate::failure::Failure;

/// The token of the listeners.
pub(crate) const TOKEN: &str = "canary-token-0123456789";

/// A listener that serves until it is stopped.
pub(crate) struct TestListener {
    pub(crate) url: String,
    pub(crate) store: Arc<dyn Store>,
    stop: CancellationToken,
    serving: JoinHandle<Result<(), Failure>>,
}

impl TestListener {
    pub(crate) async fn start() -> Self {
        Self::over(Arc::new(MemoryStore::new()), None).await
    }

    /// A listener over this store, with its audit log in the directory, or in memory.
    pub(crate) async fn over(store: Arc<dyn Store>, directory: Option<&Path>) -> Self {
        let options = AdminOptions {
            listen: "127.0.0.1:0".parse().unwrap(),
            token: Some(Token::new(TOKEN).unwrap()),
            ..AdminOptions::default()
        };
        let listener = AdminListener::bind(&options, directory).await.unwrap().unwrap();
        let admin = Admin {
            hapax: Hapax::builder(store.clone()).sweep(None).build(),
            metrics: PrometheusBuilder::new().build_recorder().handle(),
            config: Arc::new(|| json!({})),
            retention: Arc::new(|_| Duration::from_secs(7 * 86_400)),
            ready: Arc::new(|| true),
            data_dir: directory.map(Path::to_owned),
        };
        let url = format!("http://{}", listener.local_addr());
        let stop = CancellationToken::new();
        let serving = tokio::spawn(listener.serve(admin, stop.clone()));
        Self { url, store, stop, serving }
    }

    /// Writes one record of each state.
    pub(crate) async fn fill(&self) -> Filled {
        Filled::in_store(&*self.store).await
    }

    /// A client that has the token.
    pub(crate) fn client(&self) -> AdminClient {
        AdminClient::new(&self.url, Token::new(TOKEN).unwrap()).unwrap()
    }

    pub(crate) async fn state(&self, id: &RecordId) -> Option<State> {
        match self.store.get(id).await.unwrap() {
            Lookup::Found { record, now } => Some(record.state_at(now)),
            Lookup::Absent => None,
            other => panic!("{other:?}"),
        }
    }

    /// Stops the listener and waits for its end.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.serving.await.unwrap().unwrap();
    }
}
