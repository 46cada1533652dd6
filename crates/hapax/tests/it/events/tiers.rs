//! A fast tier for finished records in front of the store: it answers duplicates, and losing it costs speed only.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hapax::core::{BoxFuture, Fact, FactStore, RecordId, Store, StoreError, StoreErrorKind};
use hapax::events::{Consumer, Handled};
use hapax::{Hapax, Keeper, MemoryStore, Tiers};
use hapax_testkit::events::MemoryBroker;
use hapax_testkit::{Faulty, TokioClock};
use parking_lot::Mutex;

use super::town::{Effects, Town, event};

/// Facts in memory, which may be lost, and which may be down.
#[derive(Debug, Default)]
struct MemoryFacts {
    facts: Mutex<BTreeMap<RecordId, Fact>>,
    is_down: AtomicBool,
}

impl MemoryFacts {
    fn answer<'a, T: Send + 'a>(
        &'a self,
        op: &'static str,
        answer: impl FnOnce() -> T + Send + 'a,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        Box::pin(async move {
            if self.is_down.load(Ordering::SeqCst) {
                return Err(StoreError::new(StoreErrorKind::Unavailable, op));
            }
            Ok(answer())
        })
    }
}

impl FactStore for MemoryFacts {
    fn find<'a>(&'a self, id: &'a RecordId) -> BoxFuture<'a, Result<Option<Fact>, StoreError>> {
        self.answer("find", || self.facts.lock().get(id).cloned())
    }

    fn keep<'a>(&'a self, id: &'a RecordId, fact: &'a Fact) -> BoxFuture<'a, Result<(), StoreError>> {
        self.answer("keep", || {
            self.facts.lock().entry(*id).or_insert_with(|| fact.clone());
        })
    }

    fn withhold<'a>(&'a self, id: &'a RecordId) -> BoxFuture<'a, Result<(), StoreError>> {
        self.answer("withhold", || {
            self.facts.lock().remove(id);
        })
    }

    fn health(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.answer("health", || ())
    }
}

/// A process over a fast tier and a counted database.
fn tiered() -> (Town, Arc<MemoryFacts>, Arc<Tiers>) {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::with_clock(TokioClock::new()));
    let database = Faulty::new(store.clone());
    let facts = Arc::new(MemoryFacts::default());
    let tiers = Arc::new(Tiers::new(facts.clone(), Arc::new(database.clone())));
    let hapax = Hapax::builder(tiers.clone()).keeper(Keeper::SharedRuntime).sweep(None).cache(0).build();
    let consumer = Consumer::new(&hapax, "billing");
    let (broker, effects) = (MemoryBroker::new(), Effects::default());
    (Town { hapax, faulty: database, store, broker, consumer, effects }, facts, tiers)
}

#[tokio::test(start_paused = true)]
async fn v_03_a_duplicate_is_answered_by_the_fast_tier_without_the_database() {
    let (town, _facts, tiers) = tiered();
    assert_eq!(town.handle(event("test.ok", "1")).await, Handled::Ran);
    tiers.flush().await;
    let before = town.faulty.calls();
    for _ in 0..10 {
        assert_eq!(town.handle(event("test.ok", "1")).await, Handled::Duplicate);
    }
    assert_eq!(town.faulty.calls(), before);
    // Another event under the key is found out there, too, and its dead letter is a record in the database.
    assert_eq!(town.handle(event("test.ok", "1").data("another")).await, Handled::Dead);
    assert_eq!(town.dead().await, ["reused"]);
}

#[tokio::test(start_paused = true)]
async fn v_03_losing_the_fast_tier_changes_no_verdict() {
    let (town, facts, tiers) = tiered();
    let verdicts = async || {
        let mut verdicts = Vec::new();
        for kind in ["test.ok", "test.refused"] {
            verdicts.push(town.handle(event(kind, kind)).await);
        }
        verdicts.push(town.handle(event("test.ok", "test.ok").data("another")).await);
        tiers.flush().await;
        verdicts
    };
    assert_eq!(verdicts().await, [Handled::Ran, Handled::Dead, Handled::Dead]);
    let known = [Handled::Duplicate, Handled::Dead, Handled::Dead];
    assert_eq!(verdicts().await, known);
    facts.facts.lock().clear();
    assert_eq!(verdicts().await, known, "after it has lost everything");
    facts.is_down.store(true, Ordering::SeqCst);
    assert_eq!(verdicts().await, known, "while it is down");
    assert_eq!(town.effects.counts(), [1, 1]);
}

#[tokio::test(start_paused = true)]
async fn v_07_a_dead_letter_in_the_fast_tier_does_not_outlive_its_redrive() {
    let (town, _facts, tiers) = tiered();
    let repaired = town.router().otherwise(
        |effects: Effects, cx: hapax::Context, event: hapax::events::Event| async move {
            effects.happen(&event, &cx);
            Ok::<_, String>(())
        },
    );
    assert_eq!(town.handle(event("test.new", "1")).await, Handled::Dead);
    tiers.flush().await;
    assert_eq!(town.handle(event("test.new", "1")).await, Handled::Dead);
    tiers.flush().await;
    let redrive = hapax::events::dead_letter::Redrive::new(&*town.store, &town.broker);
    assert_eq!(redrive.run().await.unwrap().published, 1);
    let delivery = hapax::events::Source::next(&mut town.broker.source()).await.unwrap();
    assert_eq!(town.consumer.handle(delivery, &repaired).await, Handled::Ran);
    tiers.flush().await;
    assert_eq!(town.handle(event("test.new", "1")).await, Handled::Duplicate);
}
