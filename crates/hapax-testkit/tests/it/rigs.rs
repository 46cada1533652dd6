//! The rig around [`ReferenceStore`], with or without a wrapper that has a defect.

use std::sync::Arc;
use std::time::Duration;

use hapax_core::{ManualClock, RecordId, Store};
use hapax_testkit::{ReferenceStore, Rig};

/// The largest outcome that the store takes: larger ones are slow to compare.
const OUTCOME_BYTES_MAX: usize = 1 << 16;

type Wrap = Box<dyn Fn(Arc<dyn Store>) -> Arc<dyn Store> + Send + Sync>;

/// A [`ReferenceStore`] and its clock; cases call `front`.
pub(crate) struct ReferenceRig {
    clock: ManualClock,
    back: Arc<ReferenceStore>,
    front: Arc<dyn Store>,
    wrap: Wrap,
}

/// The store without a wrapper.
pub(crate) async fn reference_rig() -> ReferenceRig {
    ReferenceRig::wrapped(|store| store)
}

impl ReferenceRig {
    /// The store behind a wrapper.
    pub(crate) fn wrapped(wrap: impl Fn(Arc<dyn Store>) -> Arc<dyn Store> + Send + Sync + 'static) -> Self {
        let clock = ManualClock::new();
        let back = Arc::new(ReferenceStore::new(clock.clone()).outcome_bytes_max(OUTCOME_BYTES_MAX));
        Self { clock, front: wrap(back.clone()), back, wrap: Box::new(wrap) }
    }
}

impl Rig for ReferenceRig {
    fn store(&self) -> Arc<dyn Store> {
        self.front.clone()
    }

    async fn advance(&self, span: Duration) {
        self.clock.advance(span);
    }

    fn small_store(&self, records_max: usize) -> Option<Arc<dyn Store>> {
        let store = ReferenceStore::new(self.clock.clone()).records_max(records_max);
        Some((self.wrap)(Arc::new(store)))
    }

    async fn damage(&self, id: &RecordId) -> bool {
        self.back.damage(id)
    }
}
