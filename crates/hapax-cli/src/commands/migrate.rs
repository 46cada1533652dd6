//! `hapax migrate`: migrates a store to the layout of this version, or prints the steps that this would take.

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
    let did = if migrate.dry_run { "would be migrated" } else { "was migrated" };
    context.output.text(&match from {
        _ if steps.is_empty() => format!("{} is at version {to}, the newest: nothing to do", context.store),
        Some(from) => {
            format!("{} {did} from version {from} to version {to}: {}", context.store, steps.join(", "))
        }
        None => format!("{} {did} to version {to}: {}", context.store, steps.join(", ")),
    })
}
