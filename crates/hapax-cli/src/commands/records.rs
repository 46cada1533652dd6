//! `hapax records`: look at records and decide the uncertain ones.

mod delete;
mod find;
#[cfg(test)]
mod fixture;
mod list;
mod settle;
mod show;

use hapax_core::{Record, Timestamp};
use serde::Serialize;

use super::Context;
use crate::args::RecordsCommand;
use crate::failure::Failure;
use crate::output::note;
use crate::stores::STORE_DEFAULT;
use crate::view::{RecordView, state_words};

pub(crate) async fn run(command: &RecordsCommand, context: &Context) -> Result<(), Failure> {
    match command {
        RecordsCommand::List(list) => list::run(list, context).await,
        RecordsCommand::Show(show) => show::run(show, context).await,
        RecordsCommand::Settle(settle) => settle::run(settle, context).await,
        RecordsCommand::Release(change) => settle::release(change, context).await,
        RecordsCommand::Delete(change) => delete::run(change, context).await,
    }
}

/// A record that was found, and the store's clock at that moment.
#[derive(Debug)]
struct Found {
    record: Box<Record>,
    now: Timestamp,
}

/// One record in JSON, with the store's clock to judge its times by.
#[derive(Debug, Serialize)]
struct Document {
    #[serde(skip_serializing_if = "Option::is_none")]
    done: Option<&'static str>,
    record: RecordView,
    now_ms: u64,
}

/// Tells on stderr what is about to happen to which record.
fn announce(found: &Found, what: &str) {
    let record = &found.record;
    note(&format!(
        "record {}\n  {}, attempt {}, operation {}\n  {what}",
        record.key.id,
        state_words(record, found.now),
        record.fence.attempt,
        crate::view::or_dash(record.key.scope.operation()),
    ));
}

/// The command that somebody could type next, for the same store.
fn command_line(context: &Context, rest: &str) -> String {
    let store = context.store.to_string();
    if store == STORE_DEFAULT {
        format!("hapax {rest}")
    } else {
        format!("hapax {rest} --store {}", quoted(&store))
    }
}

/// `text` as one word of a shell.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=".contains(c);
    if text.chars().all(is_plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}
