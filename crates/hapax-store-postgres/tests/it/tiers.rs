//! A consumer with Redis in front of its database: the races that the cache must not have, and what losing it changes.
//!
//! `hapax-store-redis` tests the cache alone, before any store. Here events are processed in transactions, and the statements
//! that reach the database are counted.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use hapax::{OnceError, Tiers};
use hapax_core::{Deleted, Fact, FactStore, Fingerprint, Lookup, State, Store};
use hapax_store_redis::RedisFacts;
use hapax_testkit::servers::RedisServer;

use crate::counting::Counting;
use crate::fixture::{RETENTION, done, options};
use crate::shipping::{Process, id, state};
use crate::shop::Shop;

/// A database, a Redis in front of it, and processes that use both.
struct World {
    shop: Shop,
    redis: RedisServer,
    facts: Arc<RedisFacts>,
    between: Arc<Counting>,
}

/// One process, with a cache of its own in memory.
struct Member {
    process: Process,
    tiers: Arc<Tiers>,
}

impl World {
    async fn open() -> Self {
        let (shop, redis) = (Shop::open().await, RedisServer::start());
        // Long enough for a machine that stalls.
        let url = format!("{}?prefix=shop:&timeout_ms=120000", redis.url());
        let facts = Arc::new(RedisFacts::connect(&url).await.unwrap());
        let between = Arc::new(Counting::before(shop.server.port()));
        Self { shop, redis, facts, between }
    }

    /// Another process. Its statements are counted.
    async fn member(&self) -> Member {
        let store = options(&self.between.url()).schema(&self.shop.schema).connect().await.unwrap();
        let store = Arc::new(store);
        let tiers = Arc::new(Tiers::new(self.facts.clone(), store.clone()));
        let front = tiers.clone();
        let process = Process::behind(&self.shop, store, Some(self.between.clone()), |_| front);
        Member { process, tiers }
    }

    /// Whether the event is answered by a process that has not seen it, and how many statements that takes.
    async fn duplicate(&self, name: &str) -> (bool, usize) {
        let member = self.member().await;
        self.between.trips();
        let answered = member.process.process(name, "well").await.unwrap();
        let trips = self.between.trips();
        member.tiers.flush().await;
        assert_eq!(usize::from(!answered.replayed), member.process.runs(), "{name}");
        (answered.replayed, trips)
    }

    /// Whether the cache has the event, after all writes to it have arrived.
    async fn knows(&self, member: &Member, name: &str) -> bool {
        member.tiers.flush().await;
        self.facts.find(&id(name)).await.unwrap().is_some()
    }

    fn kept_for(&self, name: &str) -> Duration {
        let reply = self.redis.command(&["PTTL", &format!("shop:fact:{}", id(name))]);
        Duration::from_millis(reply.trim().parse().unwrap_or(0))
    }

    fn update_record(&self, name: &str, change: &str) {
        let schema = &self.shop.schema;
        self.shop.server.sql(&format!("UPDATE {schema}.record SET {change} WHERE id = '\\x{}'", id(name)));
    }
}

#[tokio::test]
async fn a_duplicate_is_answered_without_a_statement_at_the_database() {
    let world = World::open().await;
    let member = world.member().await;
    assert!(!member.process.process("order-1", "well").await.unwrap().replayed);
    member.tiers.flush().await;
    for _ in 0..3 {
        assert_eq!(world.duplicate("order-1").await, (true, 0));
    }
    assert_eq!(world.shop.effects("order-1"), 1);
}

/// Races 1 and 3: nothing of an attempt is in Redis before its commit, and Redis has no say about what is in progress.
#[tokio::test]
async fn nothing_is_in_redis_before_the_commit() {
    let world = World::open().await;
    let mut member = world.member().await;
    let mut effected =
        std::mem::replace(&mut member.process.effected, tokio::sync::mpsc::unbounded_channel().1);
    let member = Arc::new(member);
    let running = member.clone();
    let attempt = tokio::spawn(async move { running.process.process("order-1", "never ends").await });
    effected.recv().await.unwrap();
    for _ in 0..2 {
        assert!(!world.knows(&member, "order-1").await);
        let other = world.member().await;
        let busy = other.process.process("order-1", "well").await.unwrap_err();
        assert!(matches!(busy, OnceError::InProgress { .. }), "{busy:?}");
        assert_eq!(other.process.runs(), 0);
        world.redis.command(&["FLUSHALL"]);
    }
    attempt.abort();
}

/// Race 1: a commit that is refused.
#[tokio::test]
async fn a_refused_commit_is_not_a_fact() {
    let world = World::open().await;
    let member = world.member().await;
    let schema = &world.shop.schema;
    world.shop.server.sql(&format!(
        "ALTER TABLE {schema}.effect ADD CONSTRAINT once UNIQUE (key) DEFERRABLE INITIALLY DEFERRED;
         INSERT INTO {schema}.effect VALUES ('order-2')"
    ));
    let refused = member.process.process("order-2", "well").await.unwrap_err();
    assert!(matches!(refused, OnceError::Superseded { .. }), "{refused:?}");
    assert!(!world.knows(&member, "order-2").await);
    world.shop.server.sql(&format!("DELETE FROM {schema}.effect WHERE key = 'order-2'"));
    assert!(!world.duplicate("order-2").await.0, "it is no duplicate");
    assert_eq!((world.shop.effects("order-2"), world.duplicate("order-2").await), (1, (true, 0)));
}

/// Race 2: only a hit says something. A miss goes to the database, in any number of them.
#[tokio::test]
async fn a_miss_goes_to_the_database() {
    let world = World::open().await;
    let member = world.member().await;
    member.process.process("order-1", "well").await.unwrap();
    member.tiers.flush().await;
    world.redis.command(&["FLUSHALL"]);
    let (replayed, trips) = world.duplicate("order-1").await;
    assert!(replayed && trips > 0, "{trips}");
    assert_eq!((world.duplicate("order-1").await, world.shop.effects("order-1")), ((true, 0), 1));
}

/// Race 4: a commit whose answer is lost is no fact before the record is read.
#[tokio::test]
async fn an_ambiguous_commit_is_not_a_fact() {
    let world = World::open().await;
    let member = world.member().await;
    let found = member.process.process("order-1", "loses the commit's answer").await.unwrap();
    assert_eq!((found.replayed, world.between.left_to_lose()), (true, 0));
    assert!(!world.knows(&member, "order-1").await);
    let (replayed, trips) = world.duplicate("order-1").await;
    assert!(replayed && trips > 0, "{trips}");
    assert_eq!((world.duplicate("order-1").await, world.shop.effects("order-1")), ((true, 0), 1));
}

/// Race 5: a fact expires before its record, however late it is written.
#[tokio::test]
async fn a_fact_expires_before_its_record() {
    let world = World::open().await;
    let member = world.member().await;
    member.process.process("order-1", "well").await.unwrap();
    member.tiers.flush().await;
    assert!(world.kept_for("order-1") > Duration::from_secs(3600));
    world.redis.command(&["FLUSHALL"]);
    world.update_record("order-1", &format!("expires_at = {}.now_ms() + 60000", world.shop.schema));
    assert!(world.duplicate("order-1").await.0);
    let kept_for = world.kept_for("order-1");
    assert!(kept_for > Duration::ZERO && kept_for <= Duration::from_secs(60), "{kept_for:?}");
}

/// Race 6: a dead letter that is redriven is deleted through the cache, and a process that has read it before cannot put it
/// back.
#[tokio::test]
async fn a_deleted_dead_letter_does_not_come_back() {
    let world = World::open().await;
    let member = world.member().await;
    member.process.process("order-1", "refuses").await.unwrap_err();
    assert!(world.knows(&member, "order-1").await);
    let Lookup::Found { record, .. } = member.tiers.get(&id("order-1")).await.unwrap() else {
        panic!("it is a dead letter")
    };
    assert_eq!(record.state(), State::Failed);
    let deleted = member.tiers.delete(&id("order-1"), record.fence.nonce).await.unwrap();
    assert_eq!(deleted, Deleted::Applied);
    let late = Fact::new(Fingerprint::empty(), done("late"), RETENTION);
    world.facts.keep(&id("order-1"), &late).await.unwrap();

    assert!(!world.duplicate("order-1").await.0, "it runs again");
    assert!(world.duplicate("order-1").await.0);
    assert_eq!((world.shop.effects("order-1"), state(&world.shop, "order-1").await), (1, State::Completed));
}

/// Race 7: a Redis that lacks the fact, such as a replica that lags behind, says nothing; one that has it is used.
#[tokio::test]
async fn the_absence_of_a_fact_says_nothing() {
    let world = World::open().await;
    let member = world.member().await;
    member.process.process("order-1", "well").await.unwrap();
    member.tiers.flush().await;
    let lagging = RedisServer::start();
    let url = format!("{}?prefix=shop:&timeout_ms=120000", lagging.url());
    let world = World { facts: Arc::new(RedisFacts::connect(&url).await.unwrap()), ..world };
    let (replayed, trips) = world.duplicate("order-1").await;
    assert!(replayed && trips > 0, "{trips}");
    assert_eq!(world.duplicate("order-1").await, (true, 0));
}

/// Race 8: concurrent events lose no facts, and copies at the same time make one effect.
#[tokio::test]
async fn concurrent_events_are_all_known_and_have_one_effect() {
    let world = World::open().await;
    let (first, second) = (world.member().await, world.member().await);
    let names: Vec<String> = (0..40).map(|number| format!("order-{number}")).collect();
    let copies = names.iter().flat_map(|name| {
        [&first, &second].map(|member| async move {
            match member.process.process(name, "well").await {
                Ok(_) | Err(OnceError::InProgress { .. }) => {}
                Err(other) => panic!("{name}: {other:?}"),
            }
        })
    });
    join_all(copies).await;
    assert_eq!(first.process.runs() + second.process.runs(), names.len());
    first.tiers.flush().await;
    second.tiers.flush().await;
    let member = world.member().await;
    world.between.trips();
    for name in &names {
        assert!(member.process.process(name, "well").await.unwrap().replayed, "{name}");
        assert_eq!(world.shop.effects(name), 1, "{name}");
    }
    assert_eq!(world.between.trips(), 0);
}

/// Race 9: what expired in Redis is written again by the next read; after the retention of the record, only the first copy
/// counts as new.
#[tokio::test]
async fn an_expired_fact_is_written_again() {
    let world = World::open().await;
    let member = world.member().await;
    member.process.process("order-1", "well").await.unwrap();
    member.tiers.flush().await;
    let expire = || world.redis.command(&["DEL", &format!("shop:fact:{}", id("order-1"))]);
    expire();
    let (replayed, trips) = world.duplicate("order-1").await;
    assert!(replayed && trips > 0, "{trips}");
    assert_eq!(world.duplicate("order-1").await, (true, 0));

    expire();
    world.update_record("order-1", "expires_at = 1");
    assert!(!world.duplicate("order-1").await.0, "its retention is over");
    for _ in 0..2 {
        assert_eq!(world.duplicate("order-1").await, (true, 0));
    }
    assert_eq!(world.shop.effects("order-1"), 2);
}

/// With Redis, after it is lost, and when it is back: the same verdicts.
#[tokio::test]
async fn losing_redis_changes_no_verdict() {
    let world = World::open().await;
    let member = world.member().await;
    for (name, end) in [("done", "well"), ("dead", "refuses"), ("lost", "does not know"), ("again", "fails")]
    {
        member.process.process(name, end).await.ok();
    }
    member.tiers.flush().await;
    for round in ["with", "without", "again with"] {
        match round {
            "without" => world.redis.kill(),
            "again with" => {
                world.redis.restart();
                // Its client backs off after a failure.
                while world.facts.find(&id("done")).await.is_err() {
                    tokio::task::yield_now().await;
                }
            }
            _ => {}
        }
        let other = world.member().await;
        let verdict = async |name: &str| match other.process.process(name, "fails").await {
            Ok(done) if done.replayed => "duplicate",
            Ok(_) => "ran",
            Err(OnceError::PreviouslyFailed(_)) => "dead letter",
            Err(OnceError::Failed(_)) => "failed",
            Err(error) => panic!("{round}, {name}: {error:?}"),
        };
        let verdicts = [verdict("done").await, verdict("dead").await, verdict("again").await];
        assert_eq!(verdicts, ["duplicate", "dead letter", "failed"], "{round}");
        // The attempt without an outcome is taken over while Redis is there, and is released since.
        assert_eq!(verdict("lost").await, "failed", "{round}");
        assert_eq!((world.shop.effects("done"), world.shop.effects("again")), (1, 0), "{round}");
    }
}
