//! Sentinel: the store finds the primary, and finds the next one without a restart.

use hapax_core::{Promise, Store, StoreErrorKind};
use hapax_store_redis::RedisStore;
use hapax_testkit::servers::RedisServer;

use crate::fixture::{acquire, ask, done, finish, replayed};

/// A primary with a replica that has copied it, and a sentinel that knows both.
struct Watched {
    primary: RedisServer,
    replica: RedisServer,
    sentinel: RedisServer,
}

/// Whether a server says that it has this role. One whose role changes closes the connections of those who ask.
fn is(server: &RedisServer, role: &str) -> bool {
    server.try_command(&["INFO", "replication"]).is_ok_and(|said| said.contains(role))
}

impl Watched {
    fn start() -> Self {
        let primary = RedisServer::options().argument("--repl-diskless-sync-delay", "0").start();
        let replica = RedisServer::options().replica_of(&primary).start();
        while !replica.command(&["INFO", "replication"]).contains("master_link_status:up") {}
        let sentinel = RedisServer::options().sentinel_of("shop", &primary).start();
        // Only a replica that has told it about itself is one that it would promote.
        while !sentinel.command(&["SENTINEL", "REPLICAS", "shop"]).contains("master-link-status\nok") {}
        Self { primary, replica, sentinel }
    }

    fn url(&self) -> String {
        // The first one is not there.
        format!("redis+sentinel://127.0.0.1:1,127.0.0.1:{}/shop?timeout_ms=5000", self.sentinel.port())
    }

    /// Until the replica has everything that the primary has.
    fn copied(&self) {
        let field = |server: &RedisServer, name: &str| {
            let info = server.command(&["INFO", "replication"]);
            info.lines()
                .find_map(|line| line.strip_prefix(name).map(|value| value.trim().to_owned()))
                .unwrap()
        };
        while field(&self.primary, "master_repl_offset:") != field(&self.replica, "slave_repl_offset:") {}
    }
}

/// A primary that hangs breaks no connection: only the time that passes tells.
#[tokio::test]
async fn a_primary_that_hangs_is_left() {
    let watched = Watched::start();
    let store = RedisStore::connect(&watched.url().replace("5000", "500")).await.unwrap();
    finish(&store, "before", "done").await;
    watched.copied();
    watched.primary.pause();
    while store.claim(&ask("after")).await.is_err() {}
    assert_eq!(replayed(&store, "before").await, done("done"));
    while !is(&watched.replica, "role:master") {}
}

#[tokio::test]
async fn the_next_primary_is_found_without_a_restart() {
    let watched = Watched::start();
    let store = RedisStore::connect(&watched.url()).await.unwrap();
    let health = store.health().await.unwrap();
    assert_eq!(health.promise, Promise::BestEffort);
    assert!(health.warnings.iter().any(|warning| warning.contains("failover")), "{:?}", health.warnings);
    finish(&store, "before", "done").await;
    watched.copied();
    watched.primary.kill();
    let mut answer = store.claim(&ask("after")).await;
    while let Err(error) = answer {
        assert_ne!(error.kind(), StoreErrorKind::Stopped, "{error:?}");
        answer = store.claim(&ask("after")).await;
    }
    assert_eq!(replayed(&store, "before").await, done("done"));
    while !is(&watched.replica, "role:master") {}
}

#[tokio::test]
async fn a_primary_that_was_made_a_replica_is_left() {
    let watched = Watched::start();
    let store = RedisStore::connect(&watched.url()).await.unwrap();
    acquire(&store, "before").await;
    watched.copied();
    // It knows the replica, and may still want to hear more of it.
    while watched.sentinel.try_command(&["SENTINEL", "FAILOVER", "shop"]).is_err() {}
    // The old one goes on answering: with READONLY, once it has been told.
    while !is(&watched.primary, "role:slave") {}
    let mut answer = store.claim(&ask("after")).await;
    while let Err(error) = answer {
        assert_ne!(error.kind(), StoreErrorKind::Stopped, "{error:?}");
        answer = store.claim(&ask("after")).await;
    }
    let key = format!("hapax:{}", ask("after").key.id);
    while !watched.replica.try_command(&["EXISTS", &key]).is_ok_and(|there| there == "1") {}
}

#[tokio::test]
async fn a_sentinel_is_asked_with_a_password_of_its_own() {
    let primary = RedisServer::options().argument("--requirepass", "opensesame").start();
    let sentinel = RedisServer::options().sentinel_of("shop", &primary);
    let sentinel = sentinel.argument("--requirepass", "watchword").start();
    let url = format!("redis+sentinel://:opensesame@127.0.0.1:{}/shop", sentinel.port());
    let error = RedisStore::connect(&url).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    let store = RedisStore::connect(&format!("{url}?sentinel_password=watchword")).await.unwrap();
    acquire(&store, "asked").await;
    assert!(!format!("{store:?}").contains("watchword"));
    let url = format!("{url}?sentinel_user=default&sentinel_password=watchword");
    RedisStore::connect(&url).await.unwrap().health().await.unwrap();
}

#[tokio::test]
async fn a_name_that_nobody_watches_is_told() {
    let watched = Watched::start();
    let error = RedisStore::connect(&watched.url().replace("shop", "bank")).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
}
