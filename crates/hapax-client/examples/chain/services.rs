//! The three services. Each has its own records, and calls the next with the key of an effect of its own operation.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use bytes::Bytes;
use hapax::http::{HttpPolicy, IdempotencyLayer, KeyMode};
use hapax::{Context, Hapax, OnLapse, Reconciled};
use hapax_client::{Client, Key};
use hapax_core::RecordId;
use hapax_store_file::FileStore;

use super::BoxError;
use super::hold::Hold;

type Answer = (StatusCode, String);

/// A service that has its effect in the next one.
struct Forwarding {
    client: Client,
    next: String,
    hold: Hold,
}

/// Takes orders; the payment service is next.
pub(crate) fn shop(folder: &Path, next: String, hold: Hold) -> Result<Router, BoxError> {
    let service = Arc::new(Forwarding { client: Client::new(), next, hold });
    // A repetition is safe: the handler calls the next service with the same key.
    let policy = HttpPolicy::default().key(KeyMode::Required).on_lapse(OnLapse::Rerun);
    Ok(protected(Router::new().route("/", post(order)).with_state(service), folder, policy)?)
}

async fn order(State(shop): State<Arc<Forwarding>>, cx: Context, order: String) -> Answer {
    shop.call(cx.effect_key("payment"), order).await
}

/// Takes payments; the ledger is next.
pub(crate) fn payments(folder: &Path, next: String, hold: Hold) -> Result<Router, BoxError> {
    let service = Arc::new(Forwarding { client: Client::new(), next, hold });
    let policy = HttpPolicy::default().key(KeyMode::Required).on_lapse(OnLapse::Rerun);
    Ok(protected(Router::new().route("/", post(pay)).with_state(service), folder, policy)?)
}

async fn pay(State(payments): State<Arc<Forwarding>>, cx: Context, payment: String) -> Answer {
    payments.call(cx.effect_key("entry"), payment).await
}

impl Forwarding {
    async fn call(&self, key: Key, body: String) -> Answer {
        self.hold.before_effect().await;
        let answer = self.answer_of_next(key, body).await;
        self.hold.after_effect().await;
        // The layer releases the key after a 503, so a retry runs the handler again.
        answer.unwrap_or_else(|error| (StatusCode::SERVICE_UNAVAILABLE, error.to_string()))
    }

    async fn answer_of_next(&self, key: Key, body: String) -> Result<Answer, hapax_client::Error> {
        let response = self.client.post(&self.next).key(key).body(body).send().await?;
        let status = response.status();
        Ok((status, String::from_utf8_lossy(&response.bytes().await?).into_owned()))
    }
}

/// The last service: its effect is a line in a file, together with the id of the operation.
pub(crate) fn ledger(folder: &Path, hold: Hold) -> Result<Router, BoxError> {
    let entries = Arc::new(Entries(folder.join("entries")));
    let asked = entries.clone();
    // The effect is its own, so it must not run twice: after a crash the file says whether it happened.
    let policy = HttpPolicy::default().key(KeyMode::Required).reconcile(move |question| {
        let found = asked.find(question.id);
        async move {
            match found {
                Ok(Some(entry)) => Reconciled::Applied(http::Response::new(Bytes::from(entry))),
                Ok(None) => Reconciled::NotApplied,
                Err(_) => Reconciled::Unknown,
            }
        }
    });
    let app = Router::new().route("/", post(enter)).with_state((entries, Arc::new(hold)));
    Ok(protected(app, folder, policy)?)
}

async fn enter(
    State((entries, hold)): State<(Arc<Entries>, Arc<Hold>)>,
    cx: Context,
    entry: String,
) -> Answer {
    if entry.contains('\n') {
        return (StatusCode::BAD_REQUEST, "an entry is one line".to_owned());
    }
    hold.before_effect().await;
    let added = entries.add(cx.id(), &entry);
    hold.after_effect().await;
    match added {
        Ok(()) => (StatusCode::OK, entry),
        // The entry may be in the file. With a 502 the layer takes the outcome for unknown, and asks.
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()),
    }
}

/// The entries of the ledger: a line for each, `ID ENTRY`.
pub(crate) struct Entries(pub(crate) PathBuf);

impl Entries {
    fn add(&self, id: RecordId, entry: &str) -> std::io::Result<()> {
        let mut file = OpenOptions::new().append(true).create(true).open(&self.0)?;
        file.write_all(format!("{id} {entry}\n").as_bytes())?;
        file.sync_all()
    }

    fn find(&self, id: RecordId) -> std::io::Result<Option<String>> {
        let id = id.to_string();
        Ok(self.all()?.into_iter().find(|(known, _)| *known == id).map(|(_, entry)| entry))
    }

    /// Every entry, with the id of its operation.
    pub(crate) fn all(&self) -> std::io::Result<Vec<(String, String)>> {
        let text = match fs::read_to_string(&self.0) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            read => read?,
        };
        let split = |line: &str| line.split_once(' ').map(|(id, entry)| (id.to_owned(), entry.to_owned()));
        Ok(text.lines().filter_map(split).collect())
    }
}

/// The service behind the idempotency layer, with its records in its own folder.
fn protected(app: Router, folder: &Path, policy: HttpPolicy) -> Result<Router, hapax_core::StoreError> {
    let hapax = Hapax::new(FileStore::open(folder.join("records"))?);
    Ok(app.layer(IdempotencyLayer::new(&hapax).policy(policy).for_axum()))
}
