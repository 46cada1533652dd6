//! TLS: the server's certificate is checked against the authority that was named.

use std::path::{Path, PathBuf};
use std::process::Command;

use hapax_core::{Store, StoreErrorKind};
use hapax_store_postgres::PostgresStore;
use hapax_testkit::servers::PostgresServer;

use crate::fixture::acquire;

/// A certificate for localhost that signs itself, and its key.
fn certificate(dir: &Path, name: &str) -> (PathBuf, PathBuf) {
    let (certificate, key) = (dir.join(format!("{name}.pem")), dir.join(format!("{name}.key")));
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
        ])
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout"])
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output()
        .unwrap_or_else(|error| panic!("no openssl ({error}); install it: apt-get install -y openssl"));
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    (certificate, key)
}

#[tokio::test]
async fn a_server_is_trusted_by_its_authority_only() {
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
