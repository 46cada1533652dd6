//! TLS: the server's certificate is verified against the given authority.

use hapax_core::{Store, StoreErrorKind};
use hapax_store_redis::RedisStore;
use hapax_testkit::servers::{RedisServer, certificate};

use crate::fixture::{acquire, options};

#[tokio::test]
async fn a_server_is_trusted_only_through_its_authority() {
    let dir = tempfile::tempdir().unwrap();
    let (own, key) = certificate(dir.path(), "own");
    let (other, _) = certificate(dir.path(), "other");
    let server = RedisServer::options().tls(&own, &key, &own).start();
    let url = format!("{}?ca={}", server.url(), own.display());
    let store = RedisStore::connect(&url).await.unwrap();
    acquire(&store, "over TLS").await;
    store.health().await.unwrap();

    let foreign = format!("{}?ca={}", server.url(), other.display());
    for url in [foreign, server.url()] {
        assert_eq!(RedisStore::connect(&url).await.unwrap_err().kind(), StoreErrorKind::Unavailable);
    }
    let plain = options(&server);
    assert!(format!("{plain:?}").contains("localhost"));
}
