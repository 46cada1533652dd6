//! The memory store: the suite that every store passes, and its specific behaviour.

use std::sync::Arc;
use std::time::Duration;

use hapax::MemoryStore;
use hapax::core::{
    Claim, ClaimRequest, Clock, Fingerprint, Key, ManualClock, Nonce, OnLapse, Promise, Scope, ScopedKey,
    Store, StoreErrorKind,
};
use hapax_testkit::Rig;

struct MemoryRig {
    store: Arc<MemoryStore>,
    clock: ManualClock,
}

async fn rig() -> MemoryRig {
    let clock = ManualClock::new();
    MemoryRig { store: Arc::new(MemoryStore::with_clock(clock.clone())), clock }
}

impl Rig for MemoryRig {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    async fn advance(&self, span: Duration) {
        self.clock.advance(span);
    }

    fn small_store(&self, records_max: usize) -> Option<Arc<dyn Store>> {
        let store = MemoryStore::with_clock(self.clock.clone()).records_max(records_max as u64);
        Some(Arc::new(store))
    }
}

hapax_testkit::store_suite!(rig);

fn ask(key: &str) -> ClaimRequest {
    ClaimRequest {
        key: ScopedKey::new(Scope::new("memory"), &Key::new(key).unwrap()),
        fingerprint: Fingerprint::empty(),
        nonce: Nonce::random(),
        lease: Duration::from_secs(30),
        on_lapse: OnLapse::Uncertain,
        attempts_max: 5,
        uncertain_retention: Duration::from_secs(3600),
    }
}

#[tokio::test]
async fn the_health_warns_that_it_is_one_process_only() {
    let health = MemoryStore::new().health().await.unwrap();
    assert_eq!((health.store, health.promise), ("memory", Promise::OneProcess));
    assert!(health.warnings[0].contains("one process"));
}

#[tokio::test]
async fn a_full_store_refuses_new_keys_and_stores_outcomes_of_accepted_claims() {
    let store = MemoryStore::new().bytes_max(2000);
    let Claim::Acquired(lease) = store.claim(&ask("k")).await.unwrap() else {
        panic!("the store is not full")
    };
    let large =
        hapax::core::Recorded::new(hapax::core::Class::Success, hapax::core::Format::FUNCTION, vec![0; 5000]);
    store.complete(&lease, &large, Duration::from_secs(60)).await.unwrap();
    let refused = store.claim(&ask("other")).await.unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::Full);
    assert!(matches!(store.claim(&ask("k")).await.unwrap(), Claim::Replay { .. }));
    assert!(store.health().await.unwrap().warnings.iter().any(|warning| warning.starts_with("full")));
}

#[tokio::test]
async fn a_long_operation_name_counts_in_bytes() {
    let store = MemoryStore::new().bytes_max(2000);
    let long = hapax::core::Scope::new("x".repeat(5000));
    let mut ask = ask("k");
    ask.key = hapax::core::ScopedKey::new(long, &hapax::core::Key::new("k").unwrap());
    assert!(matches!(store.claim(&ask).await.unwrap(), Claim::Acquired(_)));
    let refused = store.claim(&self::ask("other")).await.unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::Full);
}

#[tokio::test]
async fn a_full_store_removes_expired_records() {
    let clock = ManualClock::new();
    // The store sweeps only the shard of the new key, so fill all shards.
    let store = MemoryStore::with_clock(clock.clone()).records_max(640);
    for n in 0..640 {
        let Claim::Acquired(lease) = store.claim(&ask(&format!("k{n}"))).await.unwrap() else {
            panic!("the store is not full")
        };
        store.release(&lease, None).await.unwrap();
    }
    assert_eq!(store.claim(&ask("new")).await.unwrap_err().kind(), StoreErrorKind::Full);
    clock.advance(Duration::from_secs(601));
    assert!(matches!(store.claim(&ask("new")).await.unwrap(), Claim::Acquired(_)));
    assert!(clock.now() > ManualClock::new().now());
}

#[tokio::test]
async fn removed_records_free_their_bytes() {
    let clock = ManualClock::new();
    let store = MemoryStore::with_clock(clock.clone());
    let empty = store.stats().await.unwrap().bytes;
    for n in 0..100 {
        let Claim::Acquired(lease) = store.claim(&ask(&format!("k{n}"))).await.unwrap() else {
            panic!("the store is not full")
        };
        store.release(&lease, None).await.unwrap();
    }
    assert!(store.stats().await.unwrap().bytes > empty);
    clock.advance(Duration::from_secs(601));
    assert_eq!(store.sweep(1000).await.unwrap().expired, 100);
    assert_eq!(store.stats().await.unwrap().bytes, empty);
}

#[tokio::test]
async fn unsettled_records_are_never_dropped_to_free_space() {
    let clock = ManualClock::new();
    let store = MemoryStore::with_clock(clock.clone()).records_max(640);
    for n in 0..640 {
        assert!(matches!(store.claim(&ask(&format!("k{n}"))).await.unwrap(), Claim::Acquired(_)));
    }
    clock.advance(Duration::from_secs(2 * 3600));
    for n in 0..64 {
        assert_eq!(store.claim(&ask(&format!("new {n}"))).await.unwrap_err().kind(), StoreErrorKind::Full);
    }
    assert_eq!(store.stats().await.unwrap().uncertain, 640);
    assert_eq!(store.sweep(1000).await.unwrap().dropped, 640, "only a sweep drops them, and reports it");
}
