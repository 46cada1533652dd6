//! `hapax migrate`: brings a store to the layout of this version, or tells what that would take.

use serde_json::json;

use super::Context;
use crate::args::Migrate;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::stores::Migration;

pub(crate) async fn run(migrate: &Migrate, context: &Context) -> Result<(), Failure> {
    let migrating = context.store.migrate(migrate.dry_run);
    let migration = Progress::new().during(format_args!("migrating {}", context.store), migrating).await?;
    let Migration { from, to, steps } = &migration;
    if context.output.json {
        return context.output.document(&json!({
            "store": context.store.to_string(),
            "version": from,
            "target": to,
            "dry_run": migrate.dry_run,
            "changes": steps,
        }));
    }
    let did = if migrate.dry_run { "would be brought" } else { "was brought" };
    context.output.text(&match from {
        _ if steps.is_empty() => format!("{} has version {to}, the newest: nothing to do", context.store),
        Some(from) => {
            format!("{} {did} from version {from} to version {to}: {}", context.store, steps.join(", "))
        }
        None => format!("{} {did} to version {to}: {}", context.store, steps.join(", ")),
    })
}
