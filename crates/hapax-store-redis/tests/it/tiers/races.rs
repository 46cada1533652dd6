use std::time::Duration;

use futures_util::future::join_all;
use hapax_core::{Claim, Deleted, Fact, FactStore, Fenced, Fingerprint, Lookup, Store, StoreErrorKind};
use hapax_store_redis::RedisFacts;
use hapax_testkit::servers::RedisServer;
use hapax_testkit::{Fault, Op, Plan};

use super::{World, key};
use crate::fixture::{RETENTION, acquire, ask, done, finish, replayed};

/// Makes the store refuse calls without applying them.
const UNAVAILABLE: Fault = Fault::ErrorBefore(StoreErrorKind::Unavailable);

async fn world() -> World {
    World::new(RedisServer::start()).await
}

/// A fact is stored only after the store has the record, and only for finished records.
#[tokio::test]
async fn only_finished_records_become_facts_after_the_store_has_them() {
    let world = world().await;
    let open = acquire(&*world.tiers, "open").await;
    assert!(!world.known(&open.id).await, "a claim is no fact");
    let released = acquire(&*world.tiers, "released").await;
    assert_eq!(world.tiers.release(&released, Some(&done("failed"))).await.unwrap(), Fenced::Applied);
    assert!(!world.known(&released.id).await, "a released attempt is no fact");
    world.store.set_plan(Plan::new().always(Op::Complete, UNAVAILABLE));
    world.tiers.complete(&open, &done("done"), RETENTION).await.unwrap_err();
    assert!(!world.known(&open.id).await, "the store has nothing");
    world.store.set_plan(Plan::new());
    let finished = finish(&*world.tiers, "finished", "done").await;
    assert!(world.known(&finished.id).await);
}

/// A hit saves a call to the store; a miss goes to it, also after Redis lost everything.
#[tokio::test]
async fn a_miss_goes_to_the_store() {
    let world = world().await;
    let lease = finish(&*world.tiers, "finished", "done").await;
    assert!(world.known(&lease.id).await);
    world.store.set_plan(Plan::new().always(Op::Claim, UNAVAILABLE));
    assert_eq!(replayed(&*world.tiers, "finished").await, done("done"));
    world.server.command(&["FLUSHALL"]);
    let missed = world.tiers.claim(&ask("finished")).await.unwrap_err();
    assert_eq!(missed.kind(), StoreErrorKind::Unavailable, "only the store knows the state");
    world.store.set_plan(Plan::new());
    assert_eq!(replayed(&*world.tiers, "finished").await, done("done"));
}

/// Only the store knows whether a key is in progress.
#[tokio::test]
async fn claims_are_not_in_redis() {
    let world = world().await;
    let lease = acquire(&*world.tiers, "open").await;
    world.server.command(&["FLUSHALL"]);
    assert!(matches!(world.tiers.claim(&ask("open")).await.unwrap(), Claim::Busy { .. }));
    assert_eq!(world.server.command(&["EXISTS", &key(&lease.id)]).trim(), "0");
}

/// A completion with an unknown result is not stored as a fact, nor is its repetition: the retention counts from the first.
/// Reading the record stores it.
#[tokio::test]
async fn an_unknown_completion_is_not_a_fact() {
    let world = world().await;
    let lease = acquire(&*world.tiers, "open").await;
    world.store.set_plan(Plan::new().at_nth(Op::Complete, 1, Fault::AnswerLost));
    let lost = world.tiers.complete(&lease, &done("done"), RETENTION).await.unwrap_err();
    assert!(lost.is_unknown());
    assert!(!world.known(&lease.id).await);
    assert_eq!(world.tiers.complete(&lease, &done("done"), RETENTION).await.unwrap(), Fenced::Applied);
    assert!(!world.known(&lease.id).await);
    assert_eq!(replayed(&*world.tiers, "open").await, done("done"));
    assert!(world.known(&lease.id).await);
}

/// The fact expires before the record, however late it was stored.
#[tokio::test]
async fn a_fact_does_not_outlive_its_record() {
    let world = world().await;
    let lease = finish(&*world.tiers, "finished", "done").await;
    assert!(world.known(&lease.id).await);
    assert!((Duration::from_secs(1)..=RETENTION).contains(&world.kept_for(&lease.id)));
    world.server.command(&["FLUSHALL"]);
    let left = Duration::from_secs(60);
    world.clock.advance(RETENTION - left);
    assert_eq!(replayed(&*world.tiers, "finished").await, done("done"));
    assert!(world.known(&lease.id).await);
    let kept_for = world.kept_for(&lease.id);
    assert!(kept_for > Duration::ZERO && kept_for <= left, "{kept_for:?}");
    // Storing it again does not extend its life.
    let fact = Fact::new(Fingerprint::empty(), done("done"), RETENTION);
    world.facts.keep(&lease.id, &fact).await.unwrap();
    assert!(world.kept_for(&lease.id) <= left);
}

/// A caller that read a record before it was deleted cannot put it back.
#[tokio::test]
async fn a_deleted_record_does_not_come_back() {
    let world = world().await;
    let lease = finish(&*world.tiers, "finished", "old").await;
    assert!(world.known(&lease.id).await);
    let deleted = world.tiers.delete(&lease.id, lease.fence.nonce).await.unwrap();
    assert_eq!(deleted, Deleted::Applied);
    let late = Fact::new(Fingerprint::empty(), done("old"), RETENTION);
    world.facts.keep(&lease.id, &late).await.unwrap();
    finish(&*world.tiers, "finished", "new").await;
    world.tiers.flush().await;
    assert_eq!(replayed(&*world.tiers, "finished").await, done("new"));
}

/// If Redis cannot be reached, nothing is deleted: Redis would still serve it.
#[tokio::test]
async fn nothing_is_deleted_that_redis_would_still_serve() {
    let world = world().await;
    let lease = finish(&*world.tiers, "finished", "done").await;
    assert!(world.known(&lease.id).await);
    world.server.kill();
    world.tiers.delete(&lease.id, lease.fence.nonce).await.unwrap_err();
    assert!(matches!(world.tiers.get(&lease.id).await.unwrap(), Lookup::Found { .. }));
}

/// Concurrent callers lose no facts.
#[tokio::test]
async fn facts_of_many_callers_are_all_kept() {
    let world = world().await;
    let names: Vec<String> = (0..100).map(|number| format!("key-{number}")).collect();
    let leases = join_all(names.iter().map(|name| finish(&*world.tiers, name, name))).await;
    world.tiers.flush().await;
    world.store.set_plan(Plan::new().always(Op::Claim, UNAVAILABLE));
    for (name, lease) in names.iter().zip(leases) {
        assert!(world.known(&lease.id).await, "{name}");
        assert_eq!(replayed(&*world.tiers, name).await, done(name));
    }
}

/// A fact that Redis evicted is stored again by the next read.
#[tokio::test]
async fn an_evicted_fact_is_stored_again() {
    let world = world().await;
    let lease = finish(&*world.tiers, "finished", "done").await;
    assert!(world.known(&lease.id).await);
    world.server.command(&["DEL", &key(&lease.id)]);
    assert_eq!(replayed(&*world.tiers, "finished").await, done("done"));
    assert!(world.known(&lease.id).await);
}

/// Redis alone refuses a key that was reused for another request.
#[tokio::test]
async fn another_request_under_a_known_key_is_a_mismatch() {
    let world = world().await;
    let lease = finish(&*world.tiers, "finished", "done").await;
    assert!(world.known(&lease.id).await);
    world.store.set_plan(Plan::new().always(Op::Claim, UNAVAILABLE));
    let mut other = ask("finished");
    other.fingerprint = Fingerprint::builder().part("body", b"another").build();
    assert_eq!(world.tiers.claim(&other).await.unwrap(), Claim::Mismatch);
}

/// An unreadable fact is a miss.
#[tokio::test]
async fn a_damaged_fact_is_a_miss() {
    let world = world().await;
    let lease = finish(&*world.tiers, "finished", "done").await;
    assert!(world.known(&lease.id).await);
    world.server.command(&["SETRANGE", &key(&lease.id), "40", "damage"]);
    assert!(!world.known(&lease.id).await);
    assert_eq!(replayed(&*world.tiers, "finished").await, done("done"));
}

/// Without Redis every call goes to the store; when it is back, facts are used again.
#[tokio::test]
async fn losing_redis_costs_speed_only() {
    let world = world().await;
    let early = finish(&*world.tiers, "early", "done").await;
    assert!(world.known(&early.id).await);
    world.server.kill();
    assert_eq!(replayed(&*world.tiers, "early").await, done("done"));
    finish(&*world.tiers, "meanwhile", "done").await;
    let warnings = world.tiers.health().await.unwrap().warnings;
    assert!(warnings.iter().any(|warning| warning.contains("fast tier")), "{warnings:?}");
    world.server.restart();
    // Both the store and the tiers back off after a failure.
    while world.facts.find(&early.id).await.is_err() {}
    loop {
        let lease = finish(&*world.tiers, &format!("later-{:?}", std::time::Instant::now()), "done").await;
        if world.known(&lease.id).await {
            break;
        }
    }
    let warnings = world.tiers.health().await.unwrap().warnings;
    assert!(!warnings.iter().any(|warning| warning.contains("fast tier")), "{warnings:?}");
}

/// Two stores under one name would serve each other's outcomes, so there is no default name.
#[tokio::test]
async fn the_prefix_names_the_store_behind() {
    let server = RedisServer::start();
    let unnamed = RedisFacts::connect(&server.url()).await.unwrap_err();
    assert_eq!(unnamed.kind(), StoreErrorKind::Invalid);
    let named =
        async |name: &str| RedisFacts::connect(&format!("{}?prefix={name}:", server.url())).await.unwrap();
    let (shop, bank) = (named("shop").await, named("bank").await);
    let id = ask("finished").key.id;
    let fact = Fact::new(Fingerprint::empty(), done("done"), RETENTION);
    // A fact under one name says nothing about another.
    shop.keep(&id, &fact).await.unwrap();
    assert!(shop.find(&id).await.unwrap().is_some());
    assert!(bank.find(&id).await.unwrap().is_none());
}
