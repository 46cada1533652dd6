//! A store in a schema of its own.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hapax_store_postgres::{Options, PostgresStore};

/// Long enough for a machine that pauses: tests that wait for an answer do not want a timeout.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A name that no other test of this process has.
pub(crate) fn schema() -> String {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    format!("test_{}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

pub(crate) fn options(url: &str) -> Options {
    PostgresStore::options(url).unwrap().timeout(PATIENCE).schema(schema())
}
