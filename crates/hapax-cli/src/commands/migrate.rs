//! `hapax migrate`: brings a store to the layout of this version.
//!
//! There is one layout of each store so far, so there is nothing to change yet: a store is told as it is, and one of
//! another version is refused.

use serde_json::json;

use super::Context;
use crate::args::Migrate;
use crate::failure::Failure;
use crate::stores::Access;

pub(crate) async fn run(migrate: &Migrate, context: &Context) -> Result<(), Failure> {
    // Opening it compares its version with ours.
    drop(context.store.open_shared(Access::Read).await?);
    let version = context.store.layout_version();
    if context.output.json {
        return context.output.document(&json!({
            "store": context.store.to_string(),
            "version": version,
            "target": version,
            "dry_run": migrate.dry_run,
            "changes": [],
        }));
    }
    context.output.text(&format!("{} has version {version}, the newest: nothing to do", context.store))
}
