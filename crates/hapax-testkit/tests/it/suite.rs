//! The suite passes on correct stores, with a clock that stands still and with one that moves.

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

mod reference {
    use crate::rigs::reference_rig;

    hapax_testkit::store_suite!(reference_rig);
}

mod own_time {
    use std::sync::Arc;
    use std::time::Duration;

    use hapax_core::{Clock, ManualClock, Store, Timestamp};
    use hapax_testkit::{Facts, ReferenceStore, Rig, Time};

    /// Moves a little at each reading, as a server's clock does.
    #[derive(Clone, Debug)]
    struct RestlessClock(ManualClock);

    impl Clock for RestlessClock {
        fn now(&self) -> Timestamp {
            self.0.advance(Duration::from_millis(1));
            self.0.now()
        }
    }

    struct OwnTimeRig {
        clock: ManualClock,
        store: Arc<ReferenceStore>,
    }

    async fn own_time_rig() -> OwnTimeRig {
        let clock = ManualClock::new();
        OwnTimeRig { store: Arc::new(ReferenceStore::new(RestlessClock(clock.clone()))), clock }
    }

    impl Rig for OwnTimeRig {
        fn store(&self) -> Arc<dyn Store> {
            self.store.clone()
        }

        async fn advance(&self, span: Duration) {
            self.clock.advance(span + Duration::from_millis(1));
        }

        fn facts(&self) -> Facts {
            Facts { time: Time::Real, ..Facts::default() }
        }
    }

    hapax_testkit::store_suite!(own_time_rig);
}
