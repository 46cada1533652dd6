//! TLS: the server's certificate is verified against the given authority.

use std::path::Path;

use hapax_core::{Store, StoreErrorKind};
use hapax_store_postgres::PostgresStore;
use hapax_testkit::servers::{PostgresServer, certificate};

use crate::fixture::acquire;

#[tokio::test]
async fn a_server_is_trusted_only_through_its_authority() {
    let dir = tempfile::tempdir().unwrap();
    let (own, key) = certificate(dir.path(), "own");
    let (other, _) = certificate(dir.path(), "other");
    let server = PostgresServer::options().tls(&own, &key).start();
    let with = |ca: &Path| format!("{}?sslmode=require&ca={}", server.url(), ca.display());
    let store = PostgresStore::connect(&with(&own)).await.unwrap();
    let lease = acquire(&store, "over TLS").await;
    store.watch(&lease.id).unwrap().await;
    store.health().await.unwrap();

    let system = format!("{}?sslmode=require", server.url());
    let plain = format!("{}?sslmode=disable", server.url());
    for url in [with(&other), system, plain] {
        let refused = PostgresStore::connect(&url).await.unwrap_err();
        assert_eq!(refused.kind(), StoreErrorKind::Unavailable, "{refused:?}");
    }
}
