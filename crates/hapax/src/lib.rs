//! Retry anything, it happens once.
mod memory;
pub use memory::MemoryStore;
