//! A primary that fails: its replica takes over, and the store locates it without a restart.

use hapax_core::{Claim, Fenced, Store, StoreErrorKind};
use hapax_testkit::servers::RedisCluster;

use super::{key, names, options};
use crate::fixture::{RETENTION, acquire, ask, done, finish, replayed};

#[tokio::test]
async fn a_promoted_replica_is_located() {
    let cluster = RedisCluster::start();
    let store = options(&cluster, "fall:").connect().await.unwrap();
    let lease = acquire(&store, "open").await;
    for name in names() {
        finish(&store, &name, &name).await;
    }
    let fallen = cluster.owner_of(&key("fall:", "open")).port();
    let fallen = cluster.primaries().iter().position(|primary| primary.port() == fallen).unwrap();
    cluster.copied(fallen);
    cluster.primaries()[fallen].kill();
    let mut completed = store.complete(&lease, &done("late"), RETENTION).await;
    while let Err(error) = completed {
        assert!(error.is_transient() && error.kind() != StoreErrorKind::Stopped, "{error:?}");
        tokio::task::yield_now().await;
        completed = store.complete(&lease, &done("late"), RETENTION).await;
    }
    assert_eq!(completed.unwrap(), Fenced::Applied);
    assert!(cluster.replicas()[fallen].command(&["INFO", "replication"]).contains("role:master"));
    for name in names() {
        let mut answer = store.claim(&ask(&name)).await;
        while answer.is_err() {
            answer = store.claim(&ask(&name)).await;
        }
        assert!(matches!(answer.unwrap(), Claim::Replay { .. }), "{name}");
    }
    assert_eq!(replayed(&store, "open").await, done("late"));
    store.health().await.unwrap();
    assert_eq!(store.stats().await.unwrap().records(), names().count() as u64 + 1);
}
