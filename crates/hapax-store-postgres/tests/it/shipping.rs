//! A consumer of orders that plans shipments in transactions.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hapax::events::{Data, Event, HandlerOutcome, Router};
use hapax::{Done, Fail, Hapax, OnLapse, OnceError};
use hapax_core::{Lookup, RecordId, Scope, ScopedKey, State, Store};
use hapax_store_postgres::{PostgresStore, Tx};
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio_postgres::Error;

use crate::counting::Counting;
use crate::shop::{Shop, key};

pub(crate) const CONSUMER: &str = "shipping";

/// The timeout of a store whose handlers wait for a connection. As long as the default, for machines that stall.
pub(crate) const STORE_TIMEOUT: Duration = Duration::from_secs(2);

/// The state of the handlers.
#[derive(Clone)]
pub(crate) struct App {
    /// The statement that is the effect of a shipment, without its name.
    schema: String,
    runs: Arc<AtomicUsize>,
    /// Told after the effect, before the commit.
    effected: mpsc::UnboundedSender<()>,
    between: Option<Arc<Counting>>,
}

/// What the orders of the tests say, and how their handler ends.
#[derive(Deserialize)]
pub(crate) struct Order {
    pub(crate) name: String,
    end: String,
}

/// Writes one row, and ends as the order says.
pub(crate) async fn plan_shipment(app: App, tx: Tx, Data(order): Data<Order>) -> Result<i64, Fail<String>> {
    app.runs.fetch_add(1, Ordering::SeqCst);
    let insert = format!("INSERT INTO {}.effect VALUES ($1) RETURNING number", app.schema);
    let text = tokio_postgres::types::Type::TEXT;
    let row =
        tx.query_typed(&insert, &[(&order.name, text)]).await.map_err(|error: Error| error.to_string())?;
    app.effected.send(()).ok();
    match &*order.end {
        "fails" => Err("no carrier".to_owned())?,
        "refuses" => return Err(Fail::permanent("no such address".to_owned())),
        "does not know" => return Err(Fail::Unknown("no answer".to_owned())),
        "panics" => panic!("as the order says"),
        "never ends" => pending().await,
        "outlasts the store's timeout" => tokio::time::sleep(STORE_TIMEOUT * 2).await,
        // After this one reply, the completion's, that of the commit is lost.
        "loses the commit's answer" => app.between.as_ref().unwrap().lose_one_after(1),
        _ => {}
    }
    Ok(row[0].get(0))
}

/// A consumer's process: a store of its own, and a router.
pub(crate) struct Process {
    pub(crate) hapax: Hapax,
    router: Router<App>,
    runs: Arc<AtomicUsize>,
    pub(crate) effected: mpsc::UnboundedReceiver<()>,
}

impl Process {
    pub(crate) fn new(shop: &Shop, store: PostgresStore, between: Option<Arc<Counting>>) -> Self {
        Self::behind(shop, Arc::new(store), between, |store| store)
    }

    /// The same with another store in front.
    pub(crate) fn behind(
        shop: &Shop,
        store: Arc<PostgresStore>,
        between: Option<Arc<Counting>>,
        front: impl FnOnce(Arc<PostgresStore>) -> Arc<dyn Store>,
    ) -> Self {
        let (runs, (told, effected)) = (Arc::new(AtomicUsize::new(0)), mpsc::unbounded_channel());
        let app = App { schema: shop.schema.clone(), runs: runs.clone(), effected: told, between };
        Self {
            hapax: Hapax::builder(front(store.clone())).build(),
            router: Router::new(app).on("order.created", store.in_tx(plan_shipment)),
            runs,
            effected,
        }
    }

    pub(crate) async fn start(shop: &Shop) -> Self {
        Self::new(shop, shop.options().connect().await.unwrap(), None)
    }

    /// One attempt at an event, as a consumer makes it.
    pub(crate) async fn process(&self, name: &str, end: &str) -> Result<Done<i64>, OnceError<String>> {
        let data = serde_json::json!({"name": name, "end": end});
        let event = Event::new("order.created").id(name).data(serde_json::to_vec(&data).unwrap());
        let router = self.router.clone();
        let attempt = self.hapax.once(CONSUMER, key(name)).on_lapse(OnLapse::Rerun);
        attempt
            .run(move |context| async move {
                match router.call(context, event).await {
                    HandlerOutcome::Done(recorded) => Ok(serde_json::from_slice(&recorded.payload).unwrap()),
                    HandlerOutcome::Retry(error) => Err(Fail::Retry(error.message)),
                    HandlerOutcome::Permanent { error, .. } => Err(Fail::permanent(error.message)),
                    HandlerOutcome::Unknown(error) => Err(Fail::Unknown(error.message)),
                    other => panic!("{other:?}"),
                }
            })
            .await
    }

    pub(crate) fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }
}

pub(crate) async fn state(shop: &Shop, name: &str) -> State {
    match shop.store.get(&id(name)).await.unwrap() {
        Lookup::Found { record, now } => record.state_at(now),
        other => panic!("{name}: {other:?}"),
    }
}

/// The record of the event `name`.
pub(crate) fn id(name: &str) -> RecordId {
    ScopedKey::new(Scope::new(CONSUMER), &key(name)).id
}
