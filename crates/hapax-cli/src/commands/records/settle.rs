//! `hapax records settle` and `release`: somebody looked and knows now.

use std::io::Read;
use std::path::Path;

use hapax_core::{Format, Recorded, Verdict};
use serde_json::json;

use super::source::{Source, id_of};
use super::{Place, announce, find::find};
use crate::args::{Change, Settle};
use crate::confirm::confirm;
use crate::failure::{Code, Failure};
use crate::output::Output;
use crate::records::{refuse_unless_uncertain, verdict};
use crate::view::{Payload, RecordView};

pub(super) async fn run(settle: &Settle, place: &Place<'_>) -> Result<(), Failure> {
    let verdict = if settle.not_applied {
        Verdict::NotApplied
    } else {
        Verdict::Applied { recorded: recorded(settle)?, retention: settle.retention }
    };
    decide(&settle.change, verdict, place).await
}

pub(super) async fn release(change: &Change, place: &Place<'_>) -> Result<(), Failure> {
    decide(change, Verdict::NotApplied, place).await
}

async fn decide(change: &Change, verdict: Verdict, place: &Place<'_>) -> Result<(), Failure> {
    let reason = change.reason.as_deref();
    let source = place.open_to_change(reason).await?;
    let found = find(&source, &change.name, Payload::Hidden).await?;
    refuse_unless_uncertain(found.record.state())?;
    announce(&found, &verdict::consequence_of(&verdict));
    confirm(change.yes)?;
    let done = verdict::done(&verdict);
    source.settle(&found.record, verdict, reason).await?;
    report(&source, &found.record, done, place.output()).await
}

async fn report(source: &Source, record: &RecordView, done: &str, output: Output) -> Result<(), Failure> {
    if !output.json {
        return output.text(&format!("{}  {done}", record.id));
    }
    match source.show(&id_of(record)?, Payload::Hidden).await {
        Ok(mut document) => {
            document.done = Some(done.to_owned());
            output.document(&document)
        }
        // It was settled all the same.
        Err(_) => output.document(&json!({ "done": done, "record": null })),
    }
}

/// The result that retries will get.
fn recorded(settle: &Settle) -> Result<Recorded, Failure> {
    let (format, payload) = match (&settle.json_value, &settle.payload, &settle.payload_file) {
        (Some(json), _, _) => (Format::FUNCTION, Some(json.clone().into_bytes())),
        (None, Some(text), _) => (settle.format.into(), Some(text.clone().into_bytes())),
        (None, None, Some(path)) => (settle.format.into(), Some(read(path)?)),
        (None, None, None) => (settle.format.into(), None),
    };
    verdict::recorded(settle.class.into(), format, payload)
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    read.map_err(|error| {
        Failure::new(Code::InputInvalid, format!("cannot read {}", path.display())).because(error)
    })
}
