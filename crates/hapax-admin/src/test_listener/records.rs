//! Records in every state, for tests. The tests of `hapax-cli` include this file.

use std::time::Duration;

use hapax_core::{
    Claim, ClaimRequest, Class, Fingerprint, Format, Key, Lease, Nonce, OnLapse, Reason, RecordId, Recorded,
    Scope, ScopedKey, Store,
};

/// The payload of every record. Tests check that it does not leak.
pub(crate) const PAYLOAD: &str = r#"{"order":"canary-payload-5e21"}"#;
/// The prefix of every key. Tests check that it does not leak.
pub(crate) const KEY: &str = "canary-key-77f0";

/// The name of the only record that is not of an HTTP request.
pub(crate) const FUNCTION: &str = "function";

const DAY: Duration = Duration::from_secs(86_400);

/// The ids of one record of each state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filled {
    pub(crate) in_progress: RecordId,
    pub(crate) completed: RecordId,
    pub(crate) failed: RecordId,
    pub(crate) uncertain: RecordId,
    pub(crate) lapsed: RecordId,
    pub(crate) released: RecordId,
}

impl Filled {
    /// Writes one record of each state.
    pub(crate) async fn in_store(store: &dyn Store) -> Self {
        Self {
            in_progress: in_progress(store, "in-progress").await.id,
            completed: completed(store, "completed").await,
            failed: failed(store, "failed").await,
            uncertain: uncertain(store, "uncertain").await,
            lapsed: lapsed(store, "lapsed").await,
            released: released(store, "released").await,
        }
    }
}

/// The key of the record with this name.
pub(crate) fn key(name: &str) -> String {
    format!("{KEY}-{name}")
}

pub(crate) async fn in_progress(store: &dyn Store, name: &str) -> Lease {
    claim(store, name, Duration::from_secs(3600)).await
}

pub(crate) async fn completed(store: &dyn Store, name: &str) -> RecordId {
    let lease = in_progress(store, name).await;
    store.complete(&lease, &Recorded::new(Class::Success, Format::FUNCTION, PAYLOAD), DAY).await.unwrap();
    lease.id
}

pub(crate) async fn failed(store: &dyn Store, name: &str) -> RecordId {
    let lease = in_progress(store, name).await;
    store.complete(&lease, &Recorded::new(Class::Error, Format::FUNCTION, PAYLOAD), DAY).await.unwrap();
    lease.id
}

pub(crate) async fn uncertain(store: &dyn Store, name: &str) -> RecordId {
    let lease = in_progress(store, name).await;
    store.abandon(&lease, Reason::Declared).await.unwrap();
    lease.id
}

pub(crate) async fn lapsed(store: &dyn Store, name: &str) -> RecordId {
    claim(store, name, Duration::ZERO).await.id
}

pub(crate) async fn released(store: &dyn Store, name: &str) -> RecordId {
    let lease = in_progress(store, name).await;
    store.release(&lease, None).await.unwrap();
    lease.id
}

async fn claim(store: &dyn Store, name: &str, lease: Duration) -> Lease {
    let operation = if name == FUNCTION { name.to_owned() } else { format!("POST /v1/{name}") };
    let scope = Scope::new(operation).in_namespace("shop").principal("canary-principal-3b");
    let ask = ClaimRequest {
        key: ScopedKey::new(scope, &Key::new(key(name)).unwrap()),
        fingerprint: Fingerprint::from_parts(1, [7; 32]),
        nonce: Nonce::random(),
        lease,
        on_lapse: OnLapse::Uncertain,
        attempts_max: 5,
        uncertain_retention: 30 * DAY,
    };
    match store.claim(&ask).await.unwrap() {
        Claim::Acquired(lease) => lease,
        other => panic!("{other:?}"),
    }
}
