//! `hapax records delete`: forget a record.

use hapax_core::{Deleted, State, Store};
use serde_json::json;

use super::{Context, Found, announce, find::find};
use crate::args::Change;
use crate::confirm::confirm;
use crate::failure::{Code, Failure};
use crate::stores::Access;

pub(super) async fn run(change: &Change, context: &Context) -> Result<(), Failure> {
    let store = context.store.open_shared(Access::Write)?;
    let found = find(&*store, &change.name, context).await?;
    let record = &found.record;
    let state = record.state_at(found.now);
    if state == State::InProgress {
        return Err(in_progress());
    }
    announce(&found, consequence(state));
    confirm(change.yes)?;
    let id = record.key.id;
    apply(&*store, &found).await?;
    if context.output.json {
        context.output.document(&json!({ "done": "deleted", "id": id.to_string() }))
    } else {
        context.output.text(&format!("{id}  deleted"))
    }
}

/// Deletes the record if it is still the one that was looked at.
async fn apply(store: &dyn Store, found: &Found) -> Result<(), Failure> {
    let deleted = store
        .delete(&found.record.key.id, found.record.fence.nonce)
        .await
        .map_err(|error| Failure::store(error, "cannot delete the record"))?;
    let what = match deleted {
        Deleted::Applied => return Ok(()),
        Deleted::InProgress => return Err(in_progress()),
        Deleted::Changed => "another attempt took the record over meanwhile, nothing was deleted",
        Deleted::Absent => "the record was removed meanwhile, nothing was deleted",
    };
    Err(Failure::new(Code::RecordChanged, what).hint("look at it again before deciding"))
}

fn consequence(state: State) -> &'static str {
    match state {
        State::Uncertain => {
            "will be deleted although nobody knows whether the operation happened: \
             the next request with the key RUNS THE OPERATION, perhaps for the second time"
        }
        State::Completed | State::Failed => {
            "will be deleted with its stored result: the next request with the key RUNS THE OPERATION AGAIN"
        }
        State::Released | State::InProgress => "will be deleted",
    }
}

fn in_progress() -> Failure {
    Failure::new(Code::InProgress, "somebody is working on this record: it cannot be deleted")
        .hint("wait until it is done or its lease has lapsed")
}

#[cfg(test)]
mod tests;
