//! Sentinel: the store locates the primary, and follows a failover without a restart.

use std::time::Duration;

use hapax_core::{Promise, Store, StoreErrorKind};
use hapax_store_redis::RedisStore;
use hapax_testkit::servers::RedisServer;

use crate::fixture::{acquire, ask, done, finish, replayed};

/// A primary with a synchronised replica, and a sentinel that knows both.
struct Watched {
    primary: RedisServer,
    replica: RedisServer,
    sentinel: RedisServer,
}

/// Whether a server reports this role. On a role change it closes client connections.
fn is(server: &RedisServer, role: &str) -> bool {
    server.try_command(&["INFO", "replication"]).is_ok_and(|said| said.contains(role))
}

/// Whether a server has the record of a key.
fn has(server: &RedisServer, key: &str) -> bool {
    let name = format!("hapax:{}", ask(key).key.id);
    server.try_command(&["EXISTS", &name]).is_ok_and(|there| there == "1")
}

/// A server, and a sentinel that takes it for the primary because it missed the failover.
fn lagging() -> (RedisServer, RedisServer) {
    let forgotten = RedisServer::start();
    let sentinel = RedisServer::options().sentinel_of("shop", &forgotten).start();
    (forgotten, sentinel)
}

fn url(sentinels: [&RedisServer; 2]) -> String {
    let [first, second] = sentinels.map(RedisServer::port);
    format!("redis+sentinel://127.0.0.1:{first},127.0.0.1:{second}/shop?timeout_ms=5000")
}

impl Watched {
    fn start() -> Self {
        let primary = RedisServer::options().argument("--repl-diskless-sync-delay", "0").start();
        let replica = RedisServer::options().replica_of(&primary).start();
        while !replica.command(&["INFO", "replication"]).contains("master_link_status:up") {}
        let sentinel = RedisServer::options().sentinel_of("shop", &primary).start();
        // The sentinel promotes only a replica that it has discovered.
        while !sentinel.command(&["SENTINEL", "REPLICAS", "shop"]).contains("master-link-status\nok") {}
        Self { primary, replica, sentinel }
    }

    fn url(&self) -> String {
        // The first one is not running.
        format!("redis+sentinel://127.0.0.1:1,127.0.0.1:{}/shop?timeout_ms=5000", self.sentinel.port())
    }

    /// Waits until the replica has everything that the primary has.
    fn copied(&self) {
        let field = |server: &RedisServer, name: &str| {
            let info = server.command(&["INFO", "replication"]);
            info.lines()
                .find_map(|line| line.strip_prefix(name).map(|value| value.trim().to_owned()))
                .unwrap()
        };
        while field(&self.primary, "master_repl_offset:") != field(&self.replica, "slave_repl_offset:") {}
    }

    /// Promotes a replica.
    fn fail_over(&self) {
        // The sentinel may not have enough information about the replica yet.
        while self.sentinel.try_command(&["SENTINEL", "FAILOVER", "shop"]).is_err() {}
        let primary = || self.sentinel.command(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "shop"]);
        while primary().ends_with(&format!("\n{}", self.primary.port())) {}
    }

    /// Keeps the primary from learning that it was replaced.
    fn keep_primary_unaware(&self) {
        self.primary.command(&["ACL", "SETUSER", "default", "-replicaof", "-slaveof"]);
    }
}

/// A primary that hangs breaks no connection: only a timeout reveals it.
#[tokio::test]
async fn the_store_leaves_a_hung_primary() {
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
async fn warns_when_a_replaced_primary_could_take_claims() {
    let watched = Watched::start();
    let store = RedisStore::connect(&watched.url()).await.unwrap();
    let is_warned =
        |warnings: &[String]| warnings.iter().any(|warning| warning.contains("min-replicas-to-write"));
    assert!(is_warned(&store.health().await.unwrap().warnings));
    watched.primary.command(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    assert!(!is_warned(&store.health().await.unwrap().warnings));
}

#[tokio::test]
async fn the_next_primary_is_located_without_a_restart() {
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
async fn the_store_leaves_a_demoted_primary() {
    let watched = Watched::start();
    let store = RedisStore::connect(&watched.url()).await.unwrap();
    acquire(&store, "before").await;
    watched.copied();
    watched.fail_over();
    // The old one goes on answering: with READONLY, once it was demoted.
    while !is(&watched.primary, "role:slave") {}
    let mut answer = store.claim(&ask("after")).await;
    while let Err(error) = answer {
        assert_ne!(error.kind(), StoreErrorKind::Stopped, "{error:?}");
        answer = store.claim(&ask("after")).await;
    }
    while !has(&watched.replica, "after") {}
}

/// As after a network partition: writes there are lost as soon as it learns of its successor.
#[tokio::test]
async fn the_store_leaves_a_replaced_primary_that_does_not_know_it() {
    let watched = Watched::start();
    let store = RedisStore::connect(&watched.url()).await.unwrap();
    finish(&store, "before", "done").await;
    watched.copied();
    watched.keep_primary_unaware();
    watched.fail_over();
    let mut number = 0;
    while !has(&watched.replica, &format!("after {number}")) {
        number += 1;
        acquire(&store, &format!("after {number}")).await;
    }
    assert!(is(&watched.primary, "role:master"));
    assert_eq!(replayed(&store, "before").await, done("done"));
}

/// They have their own connections, and one of these is in use when the others are closed.
#[tokio::test]
async fn writes_that_wait_for_replicas_leave_it_too() {
    let watched = Watched::start();
    let store = RedisStore::connect(&watched.url().replace("5000", "4000&replicas=1")).await.unwrap();
    acquire(&store, "before").await;
    watched.keep_primary_unaware();
    watched.fail_over();
    // No replica is left: every write times out waiting, which takes longer than locating the successor.
    let mut writes = 0;
    while {
        writes += 1;
        let error = store.claim(&ask(&format!("after {writes}"))).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unknown, "{error:?}");
        has(&watched.primary, &format!("after {writes}"))
    } {
        assert!(writes < 5, "every write goes to the old primary");
    }
    assert!(has(&watched.replica, &format!("after {writes}")));
}

/// A sentinel that was partitioned away has not learned of the failover.
#[tokio::test]
async fn the_sentinel_with_the_highest_epoch_is_believed() {
    let watched = Watched::start();
    watched.fail_over();
    let (_forgotten, behind) = lagging();
    for (sentinels, name) in [
        ([&behind, &watched.sentinel], "the stale one is listed first"),
        ([&watched.sentinel, &behind], "the stale one is listed last"),
    ] {
        let store = RedisStore::connect(&url(sentinels)).await.unwrap();
        acquire(&store, name).await;
        assert!(has(&watched.replica, name), "{name}");
    }
}

/// If the others do not answer, a sentinel that lags behind must not lead back to a former primary.
#[tokio::test]
async fn a_sentinel_that_lags_behind_does_not_lead_back() {
    let watched = Watched::start();
    watched.fail_over();
    let (forgotten, behind) = lagging();
    let options = RedisStore::options(&url([&watched.sentinel, &behind])).unwrap();
    let options = options.timeout(Duration::from_secs(2)).check_every(Duration::from_millis(10));
    let store = options.connect().await.unwrap();
    watched.sentinel.pause();
    let checks = || watched.replica.calls("evalsha");
    let before = checks();
    while checks() < before + 3 && forgotten.calls("evalsha") == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(forgotten.calls("evalsha"), 0);
    acquire(&store, "still here").await;
    assert!(has(&watched.replica, "still here"));
    watched.sentinel.resume();
}

#[tokio::test]
async fn sentinels_have_their_own_password() {
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
async fn an_unknown_primary_name_is_unavailable() {
    let watched = Watched::start();
    let error = RedisStore::connect(&watched.url().replace("shop", "bank")).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
}
