//! `hapax migrate`: brings a store to the layout of this version, and makes it where it is not made by whoever uses it first.
//!
//! There is one layout of each store so far. A DynamoDB table is made here; every other store is told as it is, and one of
//! another version is refused.

use serde_json::json;

use super::Context;
use crate::args::Migrate;
use crate::failure::Failure;

pub(crate) async fn run(migrate: &Migrate, context: &Context) -> Result<(), Failure> {
    let changes = context.store.migrate(migrate.dry_run).await?;
    let version = context.store.layout_version();
    if context.output.json {
        return context.output.document(&json!({
            "store": context.store.to_string(),
            "version": version,
            "target": version,
            "dry_run": migrate.dry_run,
            "changes": changes,
        }));
    }
    if changes.is_empty() {
        let done = format!("{} has version {version}, the newest: nothing to do", context.store);
        return context.output.text(&done);
    }
    let how = if migrate.dry_run { "to do" } else { "done" };
    let lines: Vec<String> = changes.iter().map(|change| format!("{how}: {change}")).collect();
    context.output.text(&lines.join("\n"))
}
