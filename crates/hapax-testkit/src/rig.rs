//! [`Rig`]: the store under test, as its author describes it to the suite.

use std::future::{Future, ready};
use std::sync::Arc;
use std::time::Duration;

use hapax_core::{RecordId, Store};

/// One fresh, empty store and control of its clock. Every case gets its own rig.
///
/// Only [`store`](Self::store) and [`advance`](Self::advance) are required. The other methods decide which further
/// rules can be tested; a case that needs one that is absent returns early.
pub trait Rig: Send + Sync + 'static {
    /// The store under test; the same one at every call.
    fn store(&self) -> Arc<dyn Store>;

    /// Lets `span` pass on the store's clock: moves a manual clock, or waits that long for a real one.
    fn advance(&self, span: Duration) -> impl Future<Output = ()> + Send;

    /// How the store differs from the default.
    fn facts(&self) -> Facts {
        Facts::default()
    }

    /// A second, empty store that has room for `records_max` records and no more, on the same clock; none when
    /// the store has no such limit.
    fn small_store(&self, records_max: usize) -> Option<Arc<dyn Store>> {
        let _ = records_max;
        None
    }

    /// Damages a stored record so that it can no longer be read; false when that cannot be done.
    fn damage(&self, id: &RecordId) -> impl Future<Output = bool> + Send {
        let _ = id;
        ready(false)
    }
}

/// How a store differs from the default, and how long its tests may wait.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Facts {
    /// The lease that cases ask for; every other span is a multiple of it. With a real clock it should be many
    /// times longer than a store call takes, and short, since the cases wait it out.
    pub lease: Duration,
    /// What moves the store's clock.
    pub time: Time,
    /// How expired records go away.
    pub removal: Removal,
}

impl Default for Facts {
    fn default() -> Self {
        Self { lease: Duration::from_secs(30), time: Time::Manual, removal: Removal::BySweep }
    }
}

/// What moves the store's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Time {
    /// Only [`Rig::advance`]: every span can be checked to the millisecond.
    Manual,
    /// Real time. Spans are checked as bounds, and what takes minutes is not tested.
    Real,
}

/// How expired records are removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Removal {
    /// They stay until a sweep removes them.
    BySweep,
    /// The server removes them, and a sweep has little or nothing to do.
    ByServer,
}
