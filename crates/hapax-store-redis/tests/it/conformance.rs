//! The conformance suite on a server whose clock the test controls: with the claims of Redis 7, with those of 6.2 on either
//! server, with writes that wait for a replica, with Sentinel, and on a cluster.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use hapax_core::{RecordId, Store};
use hapax_store_redis::RedisStore;
use hapax_testkit::servers::{RedisCluster, RedisServer};
use hapax_testkit::{Facts, Removal, Rig, Time, store_suite};

use crate::fixture::{PATIENCE, options};

struct RedisRig {
    store: Arc<RedisStore>,
    server: RedisServer,
    /// Its replica or its sentinel.
    _beside: Option<RedisServer>,
}

impl Rig for RedisRig {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    async fn advance(&self, span: Duration) {
        // The server drops a key in the millisecond after its expiry.
        self.server.clock().advance(span + Duration::from_millis(1));
    }

    fn facts(&self) -> Facts {
        facts()
    }

    async fn damage(&self, id: &RecordId) -> bool {
        damage(&self.server, &format!("hapax:{id}"))
    }
}

/// A store under its own prefix, on the cluster that all cases share.
struct ClusterRig {
    store: Arc<RedisStore>,
    cluster: Arc<RedisCluster>,
    prefix: String,
}

impl Rig for ClusterRig {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    async fn advance(&self, span: Duration) {
        self.cluster.advance(span + Duration::from_millis(1));
    }

    fn facts(&self) -> Facts {
        facts()
    }

    async fn damage(&self, id: &RecordId) -> bool {
        let key = format!("{}{id}", self.prefix);
        damage(self.cluster.owner_of(&key), &key)
    }
}

fn facts() -> Facts {
    Facts {
        lease: Duration::from_secs(30),
        // No time passes on the server; the remaining retention is computed without a round trip.
        time: Time::Real,
        removal: Removal::ByServer,
    }
}

fn damage(server: &RedisServer, key: &str) -> bool {
    server.command(&["SETRANGE", key, "30", "damage"]);
    true
}

fn server() -> RedisServer {
    RedisServer::options().clock().start()
}

mod seven {
    use super::*;

    async fn rig() -> RedisRig {
        let server = server();
        RedisRig { store: Arc::new(options(&server).connect().await.unwrap()), server, _beside: None }
    }

    hapax_testkit::store_suite!(rig);
}

mod six {
    use super::*;

    async fn rig() -> RedisRig {
        let server = server();
        let store = options(&server).claim_by_script().connect().await.unwrap();
        RedisRig { store: Arc::new(store), server, _beside: None }
    }

    hapax_testkit::store_suite!(rig);
}

/// Runs every case in one test: as separate tests, twice as many would have to be compiled.
fn pass_all<R: Rig>(rig: impl AsyncFn() -> R) {
    for case in store_suite::cases::<R>() {
        let checked = catch_unwind(AssertUnwindSafe(|| {
            store_suite::run(async {
                let rig = rig().await;
                (case.check)(&rig).await;
            });
        }));
        assert!(checked.is_ok(), "{} fails", case.name);
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn on_a_server_of_version_6() {
    pass_all(async || {
        let server = RedisServer::options().old().clock().start();
        RedisRig { store: Arc::new(options(&server).connect().await.unwrap()), server, _beside: None }
    });
}

#[test]
fn with_writes_that_wait_for_a_replica() {
    pass_all(async || {
        let server = RedisServer::options().clock().argument("--repl-diskless-sync-delay", "0").start();
        let replica = RedisServer::options().replica_of(&server).start();
        while !replica.command(&["INFO", "replication"]).contains("master_link_status:up") {}
        let store = options(&server).replicas(1).connect().await.unwrap();
        RedisRig { store: Arc::new(store), server, _beside: Some(replica) }
    });
}

#[test]
fn with_sentinel() {
    pass_all(async || {
        let server = server();
        let sentinel = RedisServer::options().sentinel_of("shop", &server).start();
        let url = format!("redis+sentinel://127.0.0.1:{}/shop", sentinel.port());
        let store = RedisStore::options(&url).unwrap().timeout(PATIENCE).connect().await.unwrap();
        RedisRig { store: Arc::new(store), server, _beside: Some(sentinel) }
    });
}

#[test]
fn on_a_cluster() {
    let cluster = Arc::new(RedisCluster::start_with_clock());
    let cases = std::cell::Cell::new(0);
    pass_all(async || {
        cases.set(cases.get() + 1);
        let (cluster, prefix) = (cluster.clone(), format!("case-{}:", cases.get()));
        let options = RedisStore::options(&cluster.url()).unwrap().timeout(PATIENCE).prefix(&prefix);
        ClusterRig { store: Arc::new(options.connect().await.unwrap()), cluster, prefix }
    });
    assert!(cases.get() > 10, "the suite has cases");
}
