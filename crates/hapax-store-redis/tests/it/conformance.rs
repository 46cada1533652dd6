//! The suite that every store passes, on a server whose clock the test moves: with the claims of Redis 7, with those of
//! 6.2, with writes that wait for a replica, and with a server that a sentinel knows.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use hapax_core::{RecordId, Store};
use hapax_store_redis::{OUTCOME_BYTES_MAX_DEFAULT, RedisStore};
use hapax_testkit::servers::RedisServer;
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
        // The server drops a key in the millisecond after its last one.
        self.server.clock().advance(span + Duration::from_millis(1));
    }

    fn facts(&self) -> Facts {
        Facts {
            lease: Duration::from_secs(30),
            // Nobody waits here, but how much longer an outcome is kept is told without asking the server.
            time: Time::Real,
            removal: Removal::ByItself,
            outcome_bytes: OUTCOME_BYTES_MAX_DEFAULT,
            outcome_bytes_refused: Some(OUTCOME_BYTES_MAX_DEFAULT + 1),
        }
    }

    async fn damage(&self, id: &RecordId) -> bool {
        self.server.command(&["SETRANGE", &format!("hapax:{id}"), "30", "damage"]);
        true
    }
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

/// Passes every case in one test: as tests of their own, twice as many would have to be compiled.
fn pass_all(rig: impl AsyncFn() -> RedisRig) {
    for case in store_suite::cases::<RedisRig>() {
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
fn with_a_server_that_a_sentinel_knows() {
    pass_all(async || {
        let server = server();
        let sentinel = RedisServer::options().sentinel_of("shop", &server).start();
        let url = format!("redis+sentinel://127.0.0.1:{}/shop", sentinel.port());
        let store = RedisStore::options(&url).unwrap().timeout(PATIENCE).connect().await.unwrap();
        RedisRig { store: Arc::new(store), server, _beside: Some(sentinel) }
    });
}
