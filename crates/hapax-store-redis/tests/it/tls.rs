//! TLS: the server's certificate is checked against the authority that was named.

use std::path::Path;
use std::process::Command;

use hapax_core::{Store, StoreErrorKind};
use hapax_store_redis::RedisStore;
use hapax_testkit::servers::RedisServer;

use crate::fixture::{acquire, options};

/// A certificate for localhost that signs itself, and its key.
fn certificate(dir: &Path, name: &str) -> (std::path::PathBuf, std::path::PathBuf) {
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
