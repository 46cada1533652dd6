//! The process-wide default: functions with `#[idempotent]` use it unless they name another.

use std::sync::OnceLock;

use super::Hapax;

static GLOBAL: OnceLock<Hapax> = OnceLock::new();

/// A default is registered already; it stays.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a default Hapax is registered already")]
pub struct GlobalAlreadySet;

impl Hapax {
    /// Registers this as the default of the process, for functions with `#[idempotent]` that name no other. Call it at
    /// start-up, in the program and not in a library. The default is never dropped; [`drain`](Self::drain) it at the end.
    ///
    /// # Errors
    /// [`GlobalAlreadySet`] when it is not the first.
    pub fn set_global(&self) -> Result<(), GlobalAlreadySet> {
        GLOBAL.set(self.clone()).map_err(|_refused| GlobalAlreadySet)
    }

    /// The default of the process, if one is [registered](Self::set_global).
    pub fn global() -> Option<Self> {
        GLOBAL.get().cloned()
    }
}
