//! Functions with `#[idempotent]` on a memory store, and the compiler's messages.

#![allow(clippy::unwrap_used, reason = "a panic in a test is the report")]

mod arguments;
mod documents;
mod engines;
mod executions;
mod keys;
mod methods;
mod outcomes;
mod ui;
mod unprotected;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use hapax::{Hapax, MemoryStore};

/// A fresh engine, and what happened.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) hapax: Hapax,
    effects: Arc<AtomicU32>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::over(MemoryStore::new())
    }

    pub(crate) fn over(store: MemoryStore) -> Self {
        Self { hapax: Hapax::new(store), effects: Arc::default() }
    }

    /// One effect; the number of effects so far.
    pub(crate) fn happen(&self) -> u32 {
        self.effects.fetch_add(1, Ordering::SeqCst) + 1
    }

    pub(crate) fn count(&self) -> u32 {
        self.effects.load(Ordering::SeqCst)
    }
}
