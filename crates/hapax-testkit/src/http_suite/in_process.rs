//! [`InProcess`]: a surface whose parts are all in this process. It does not know the layer itself.

use std::fmt;
use std::time::Duration;

use hapax_core::{BoxFuture, ManualClock};

use super::{Control, Running, Server, StoreFault};
use crate::Faulty;

/// Begins a graceful shutdown of the layer under test.
pub type Drain = Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

/// A surface in the same process, as the parts that cases control.
pub struct InProcess {
    /// The server of the layer and the origin behind it.
    pub server: Server,
    /// The clock of the store.
    pub clock: ManualClock,
    /// The store of the layer.
    pub store: Faulty,
    /// Shuts the layer down.
    pub drain: Drain,
}

impl InProcess {
    /// The surface, ready to play cases.
    pub fn running(self) -> Running {
        Running { addr: self.server.addr(), control: Box::new(self) }
    }
}

impl Control for InProcess {
    fn advance(&self, span: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async move { self.clock.advance(span) })
    }

    fn drain(&self) -> BoxFuture<'_, ()> {
        (self.drain)()
    }

    fn store(&self, fault: StoreFault) -> BoxFuture<'_, ()> {
        Box::pin(async move { self.store.set_plan(fault.plan()) })
    }
}

impl fmt::Debug for InProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InProcess").field("server", &self.server).finish_non_exhaustive()
    }
}
