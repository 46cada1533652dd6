//! Servers that are down, hang or come back: an answer in time, no promised write lost, no restart needed.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hapax_core::{BoxFuture, Claim, Fenced, Store, StoreErrorKind};
use hapax_store_dynamodb::{Credentials, CredentialsSource, DynamoDbStore, OpenError};
use hapax_testkit::servers::DynamoDbServer;

use crate::fixture::{RETENTION, acquire, ask, connect, done, finish, options, replayed};
use crate::proxy::Proxy;

/// Waits until the store answers again. Each try is bounded by the store's own timeout.
async fn recovered(store: &DynamoDbStore) {
    while store.health().await.is_err() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_killed_server_is_unavailable_and_reconnected() {
    let server = DynamoDbServer::start_on_disk();
    let store = connect(&server, "killed").await;
    let lease = acquire(&store, "open").await;
    finish(&store, "finished", "done").await;
    server.kill();
    // The first call may have been in flight when the connection broke.
    store.get(&lease.id).await.unwrap_err();
    for _ in 0..3 {
        assert_eq!(store.claim(&ask("fresh")).await.unwrap_err().kind(), StoreErrorKind::Unavailable);
        assert_eq!(store.renew(&lease).await.unwrap_err().kind(), StoreErrorKind::Unavailable);
        assert_eq!(store.get(&lease.id).await.unwrap_err().kind(), StoreErrorKind::Unavailable);
        assert_eq!(store.health().await.unwrap_err().kind(), StoreErrorKind::Unavailable);
    }
    let unreachable = options(&server, "killed").connect().await.unwrap_err();
    assert_eq!(unreachable.kind(), StoreErrorKind::Unavailable);
    server.restart();
    recovered(&store).await;
    assert!(matches!(store.claim(&ask("open")).await.unwrap(), Claim::Busy { .. }));
    assert_eq!(replayed(&store, "finished").await, done("done"));
    assert_eq!(store.complete(&lease, &done("late"), RETENTION).await.unwrap(), Fenced::Applied);
    assert_eq!(replayed(&store, "open").await, done("late"));
    acquire(&store, "fresh").await;
}

#[tokio::test]
async fn calls_to_a_hung_server_time_out() {
    let server = DynamoDbServer::start();
    connect(&server, "hanging").await;
    let store = options(&server, "hanging").timeout(Duration::from_millis(200)).connect().await;
    let store = store.expect("a running server answers in time");
    server.pause();
    let claim = ask("sent");
    // They may be applied when the server resumes.
    assert_eq!(store.claim(&claim).await.unwrap_err().kind(), StoreErrorKind::Unknown);
    assert_eq!(store.claim(&claim).await.unwrap_err().kind(), StoreErrorKind::Unknown);
    assert_eq!(store.get(&claim.key.id).await.unwrap_err().kind(), StoreErrorKind::Unavailable);
    assert_eq!(store.health().await.unwrap_err().kind(), StoreErrorKind::Unavailable);
    server.resume();
    recovered(&store).await;
    let mut answer = store.claim(&claim).await;
    while answer.as_ref().is_err_and(hapax_core::StoreError::is_transient) {
        answer = store.claim(&claim).await;
    }
    assert!(matches!(answer.unwrap(), Claim::Acquired(lease) if lease.fence.attempt == 1));
}

/// Fails while it is down.
#[derive(Clone, Debug, Default)]
struct Source {
    is_down: Arc<AtomicBool>,
}

impl CredentialsSource for Source {
    fn credentials(&self) -> BoxFuture<'_, Result<Credentials, Box<dyn Error + Send + Sync>>> {
        let is_down = self.is_down.load(Ordering::SeqCst);
        let answer = if is_down {
            Err("the vault failed: sealed".into())
        } else {
            Ok(Credentials::new("test", "test"))
        };
        Box::pin(async move { answer })
    }
}

#[tokio::test]
async fn an_outage_of_the_credentials_source_sends_nothing() {
    let server = DynamoDbServer::start();
    connect(&server, "signed").await;
    let (proxy, source) = (Proxy::start(&server).await, Source::default());
    let store = proxy.options("signed").credentials(source.clone()).connect().await.unwrap();
    proxy.calls();
    source.is_down.store(true, Ordering::SeqCst);
    let error = store.claim(&ask("order")).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    let why = error.source().and_then(|source| source.downcast_ref()).unwrap();
    assert!(matches!(why, OpenError::Credentials { why } if why.contains("the vault failed")), "{why}");
    assert_eq!(proxy.calls(), [""; 0]);
    source.is_down.store(false, Ordering::SeqCst);
    acquire(&store, "order").await;
}
