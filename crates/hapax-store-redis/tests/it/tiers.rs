//! Redis in front of another store: the races that a cache must not have, and a server that goes away.

mod races;

use std::sync::Arc;
use std::time::Duration;

use hapax::{MemoryStore, Tiers};
use hapax_core::{FactStore, ManualClock, RecordId, Store};
use hapax_store_redis::RedisFacts;
use hapax_testkit::servers::RedisServer;
use hapax_testkit::{Facts, Faulty, ReferenceStore, Rig, Time, store_suite};

/// The fixture of one test. The store behind can be made to fail.
struct World {
    server: RedisServer,
    facts: Arc<RedisFacts>,
    store: Faulty,
    clock: ManualClock,
    tiers: Arc<Tiers>,
}

impl World {
    async fn new(server: RedisServer) -> Self {
        let clock = ManualClock::new();
        let store = Faulty::new(Arc::new(MemoryStore::with_clock(clock.clone())));
        // Long enough for a machine that stalls.
        let url = format!("{}?prefix=shop:&timeout_ms=120000", server.url());
        let facts = Arc::new(RedisFacts::connect(&url).await.unwrap());
        let tiers = Arc::new(Tiers::new(facts.clone(), Arc::new(store.clone())));
        Self { server, facts, store, clock, tiers }
    }

    /// The fact in Redis after all calls in flight have arrived.
    async fn known(&self, id: &RecordId) -> bool {
        self.tiers.flush().await;
        self.facts.find(id).await.unwrap().is_some()
    }

    /// The remaining time to live of a record's fact; zero if there is none.
    fn kept_for(&self, id: &RecordId) -> Duration {
        let reply = self.server.command(&["PTTL", &key(id)]);
        Duration::from_millis(reply.trim().parse().unwrap_or(0))
    }
}

fn key(id: &RecordId) -> String {
    format!("shop:fact:{id}")
}

impl Rig for World {
    fn store(&self) -> Arc<dyn Store> {
        self.tiers.clone()
    }

    async fn advance(&self, span: Duration) {
        // Calls in flight would not notice the clock change.
        self.tiers.flush().await;
        self.clock.advance(span);
        self.server.clock().advance(span);
    }

    fn facts(&self) -> Facts {
        // The remaining retention comes from Redis, whose clock is not controlled.
        Facts { time: Time::Real, ..Facts::default() }
    }
}

mod suite {
    use super::*;

    async fn rig() -> World {
        World::new(RedisServer::options().clock().start()).await
    }

    store_suite!(rig);
}

#[tokio::test]
async fn outcomes_are_limited_by_the_store_behind() {
    let world = World::new(RedisServer::start()).await;
    let store = ReferenceStore::new(ManualClock::new()).outcome_bytes_max(7);
    assert_eq!(Tiers::new(world.facts.clone(), Arc::new(store)).outcome_bytes_max(), 7);
}
