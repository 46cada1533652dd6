//! `hapax records settle` and `release`: settle an uncertain record with what an operator has found out.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use hapax_admin::records::settlement::{self, Decision};
use hapax_admin::records::{refuse_unless_uncertain, response};
use hapax_admin::view::{Payload, RecordView};
use hapax_core::{Format, Recorded};
use http::header::CONTENT_TYPE;
use serde_json::json;

use super::source::{Source, id_of};
use super::{Target, announce, find::find};
use crate::args::{Change, ResponseArgs, Settle};
use crate::confirm::confirm;
use crate::failure::{Code, Failure};
use crate::output::{Output, note};
use crate::stores::OUTCOME_BYTES_MAX;

pub(super) async fn run(settle: &Settle, target: &Target<'_>) -> Result<(), Failure> {
    let decision = if settle.not_applied {
        Decision::NotApplied
    } else {
        Decision::Applied { recorded: recorded(settle)?, retention: settle.retention }
    };
    decide(&settle.change, decision, target).await
}

pub(super) async fn release(change: &Change, target: &Target<'_>) -> Result<(), Failure> {
    decide(change, Decision::NotApplied, target).await
}

async fn decide(change: &Change, decision: Decision, target: &Target<'_>) -> Result<(), Failure> {
    let reason = change.reason.as_deref();
    let source = target.open_to_change(reason).await?;
    let found = find(&source, &change.name, Payload::Hidden).await?;
    refuse_unless_uncertain(found.record.state())?;
    let verdict = match decision {
        Decision::Applied { retention: None, .. } => decision.verdict(target.retention_of(&found)?),
        // The retention is given, or the verdict has none.
        _ => decision.verdict(Duration::ZERO),
    };
    announce(&found, &settlement::consequence_of(&verdict));
    if let Some(caution) = settlement::caution(&found.record.scope.operation, &verdict) {
        note(&format!("  {caution}"));
    }
    confirm(change.yes)?;
    let done = settlement::done(&verdict);
    source.settle(&found.record, verdict, reason).await?;
    report(&source, &found.record, done, target.output()).await
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
        // The record was settled nevertheless.
        Err(_) => output.document(&json!({ "done": done, "record": null })),
    }
}

/// The result that retries receive.
fn recorded(settle: &Settle) -> Result<Recorded, Failure> {
    if let Some(status) = settle.response.status {
        return http_response(status, &settle.response);
    }
    let (format, payload) = match (&settle.json_value, &settle.payload, &settle.payload_file) {
        (Some(json), _, _) => (Format::FUNCTION, Some(json.clone().into_bytes())),
        (None, Some(text), _) => (settle.format.into(), Some(text.clone().into_bytes())),
        (None, None, Some(path)) => (settle.format.into(), Some(read(path)?)),
        (None, None, None) => (settle.format.into(), None),
    };
    settlement::recorded(settle.class.into(), format, payload)
}

/// The HTTP response that retries receive.
fn http_response(status: u16, typed: &ResponseArgs) -> Result<Recorded, Failure> {
    let mut fields = response::Fields::new();
    for line in &typed.header {
        let (name, value) = response::parse_field(line)?;
        response::add(&mut fields, name, value);
    }
    let default_type = typed.body_json.as_ref().map(|_| "application/json");
    if let Some(content_type) = typed.content_type.as_deref().or(default_type) {
        if fields.contains_key(CONTENT_TYPE.as_str()) && typed.content_type.is_some() {
            return Err(Failure::new(Code::InputInvalid, "the content type is given twice")
                .hint("use either --content-type or --header"));
        }
        let field = fields.entry(CONTENT_TYPE.to_string());
        field.or_insert_with(|| response::FieldLines::One(content_type.to_owned()));
    }
    let body = match (&typed.body, &typed.body_json, &typed.body_file) {
        (Some(text), _, _) => text.clone().into_bytes(),
        (None, Some(json), _) => settlement::checked_json(json.clone().into_bytes())?,
        (None, None, Some(path)) => read(path)?,
        (None, None, None) => Vec::new(),
    };
    response::recorded(response::response(status, &fields, body.into())?)
}

/// Reads a file, up to a size that no store accepts.
fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let unreadable =
        |error| Failure::new(Code::InputInvalid, format!("cannot read {}", path.display())).because(error);
    let source: Box<dyn Read> = if path == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(path).map_err(unreadable)?)
    };
    let mut bytes = Vec::new();
    source.take(OUTCOME_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() > OUTCOME_BYTES_MAX {
        return Err(Failure::new(
            Code::TooLarge,
            format!("{} has more than {OUTCOME_BYTES_MAX} bytes", path.display()),
        )
        .hint(
            "settle it without a result: retries then learn that the operation happened, but not its result",
        ));
    }
    Ok(bytes)
}
