//! Logs the store's promise at the start: one line, which is a warning if the store does not durably keep what it
//! acknowledges.

use hapax_admin::text::printable;
use hapax_core::{Promise, Store};

use crate::stores::StoreUrl;

/// Logs and returns the promise of the store with its present settings; none if they cannot be read.
pub(super) async fn log(url: &StoreUrl, store: &dyn Store) -> Option<Promise> {
    let health = match store.health().await {
        Ok(health) => health,
        Err(error) => {
            tracing::warn!(%error, "the promise of {url} is unknown: its settings cannot be read");
            return None;
        }
    };
    let (words, warnings) = (health.promise.words(), printable(&health.warnings.join("; ")));
    match (health.promise, warnings.is_empty()) {
        (Promise::BestEffort, _) => tracing::warn!("the promise of {url}: {words}; reasons: {warnings}"),
        (_, true) => tracing::info!("the promise of {url}: {words}"),
        (_, false) => tracing::info!("the promise of {url}: {words}; warnings: {warnings}"),
    }
    Some(health.promise)
}
