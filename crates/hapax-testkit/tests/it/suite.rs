//! The suite passes on the two stores that are right by construction.

mod memory {
    use std::sync::Arc;
    use std::time::Duration;

    use hapax::MemoryStore;
    use hapax_core::{ManualClock, Store};
    use hapax_testkit::Rig;

    struct MemoryRig {
        clock: ManualClock,
        store: Arc<MemoryStore>,
    }

    async fn memory_rig() -> MemoryRig {
        let clock = ManualClock::new();
        let store = Arc::new(MemoryStore::with_clock(clock.clone()));
        MemoryRig { clock, store }
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

    hapax_testkit::store_suite!(memory_rig);
}
