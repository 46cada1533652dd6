//! `hapax records delete`: removes a record.

use hapax_admin::records::refuse_while_in_progress;
use hapax_admin::records::settlement::consequence_of_deleting;
use hapax_admin::view::Payload;
use serde_json::json;

use super::{Target, announce, find::find};
use crate::args::Change;
use crate::confirm::confirm;
use crate::failure::Failure;

pub(super) async fn run(change: &Change, target: &Target<'_>) -> Result<(), Failure> {
    let reason = change.reason.as_deref();
    let source = target.open_to_change(reason).await?;
    let found = find(&source, &change.name, Payload::Hidden).await?;
    let record = &found.record;
    refuse_while_in_progress(record.state())?;
    announce(&found, consequence_of_deleting(record.state()));
    confirm(change.yes)?;
    source.delete(record, reason).await?;
    let output = target.output();
    if output.json {
        output.document(&json!({ "done": "deleted", "id": record.id }))
    } else {
        output.text(&format!("{}  deleted", record.id))
    }
}
