//! The promise in force, told once at the start: one line, which is a warning where the store does not keep what
//! it acknowledges.

use hapax_core::{Promise, Store};

use crate::output::printable;
use crate::stores::StoreUrl;

/// Tells what the store promises as it is set up; none where it does not say.
pub(super) async fn tell(url: &StoreUrl, store: &dyn Store) -> Option<Promise> {
    let health = match store.health().await {
        Ok(health) => health,
        Err(error) => {
            tracing::warn!(%error, "the promise of {url} is not known: the store does not tell its settings");
            return None;
        }
    };
    let (words, warnings) = (health.promise.words(), printable(&health.warnings.join("; ")));
    match (health.promise, warnings.is_empty()) {
        (Promise::BestEffort, _) => tracing::warn!("the promise of {url}: {words}. Why: {warnings}"),
        (_, true) => tracing::info!("the promise of {url}: {words}"),
        (_, false) => tracing::info!("the promise of {url}: {words}. To look at: {warnings}"),
    }
    Some(health.promise)
}
