//! `hapax records settle` and `release`: somebody looked and knows now.

use std::io::Read;
use std::path::Path;

use hapax_core::{Format, Nonce, Recorded, Settled, Settlement, State, Store, StoreError, Verdict};

use super::{Context, Document, Found, announce, find::find};
use crate::args::{Change, Settle};
use crate::confirm::confirm;
use crate::failure::{Code, Failure};
use crate::stores::Access;
use crate::time::brief;
use crate::view::{Payload, RecordView, class_name, format_name, state_words};

/// How often a settlement is sent again when its answer was lost.
const REPEATS_MAX: usize = 3;

pub(super) async fn run(settle: &Settle, context: &Context) -> Result<(), Failure> {
    let verdict = if settle.not_applied {
        Verdict::NotApplied
    } else {
        Verdict::Applied { recorded: recorded(settle)?, retention: settle.retention }
    };
    decide(&settle.change, verdict, context).await
}

pub(super) async fn release(change: &Change, context: &Context) -> Result<(), Failure> {
    decide(change, Verdict::NotApplied, context).await
}

async fn decide(change: &Change, verdict: Verdict, context: &Context) -> Result<(), Failure> {
    let store = context.store.open_shared(Access::Write)?;
    let found = find(&*store, &change.name, context).await?;
    refuse_unless_uncertain(&found)?;
    announce(&found, &words(&verdict));
    confirm(change.yes)?;
    let done = match verdict {
        Verdict::Applied { .. } => "settled as applied",
        Verdict::NotApplied => "settled as not applied",
    };
    apply(&*store, &found, verdict).await?;
    report(&*store, &found, done, context).await
}

/// Settles the record if it is still the one that was looked at.
async fn apply(store: &dyn Store, found: &Found, verdict: Verdict) -> Result<(), Failure> {
    let settlement = Settlement { attempt: found.record.fence.nonce, nonce: Nonce::random(), verdict };
    let settled = send(store, found, &settlement)
        .await
        .map_err(|error| Failure::store(error, "cannot settle the record"))?;
    let what = match settled {
        Settled::Applied => return Ok(()),
        Settled::NotUncertain(state) => format!("the record became {state} meanwhile, nothing was changed"),
        Settled::Changed => "another attempt took the record over meanwhile, nothing was changed".to_owned(),
        Settled::Absent => "the record was removed meanwhile, nothing was changed".to_owned(),
    };
    Err(Failure::new(Code::RecordChanged, what).hint("look at it again before deciding"))
}

/// The same nonce again settles what a lost answer left open; it can never be applied twice.
async fn send(store: &dyn Store, found: &Found, settlement: &Settlement) -> Result<Settled, StoreError> {
    let mut repeats = 0;
    loop {
        match store.settle(&found.record.key.id, settlement).await {
            Err(error) if error.is_unknown() && repeats < REPEATS_MAX => repeats += 1,
            answer => return answer,
        }
    }
}

fn refuse_unless_uncertain(found: &Found) -> Result<(), Failure> {
    match found.record.state_at(found.now) {
        State::Uncertain => Ok(()),
        State::InProgress => Err(Failure::new(Code::InProgress, "somebody is working on this record")
            .hint("wait until it is done or its lease has lapsed")),
        State::Completed | State::Failed => Err(Failure::new(
            Code::NotUncertain,
            format!("there is nothing to decide: the record is {}", state_words(&found.record, found.now)),
        )
        .hint("its stored result answers retries; `records delete` would let the operation run again")),
        State::Released => {
            Err(Failure::new(Code::NotUncertain, "there is nothing to decide: the key is released already"))
        }
    }
}

fn words(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Applied { recorded, retention } if recorded.format == Format::NOT_KEPT => format!(
            "will be settled as applied, without a result: for {} retries learn that it happened, \
             not what it answered",
            brief(*retention)
        ),
        Verdict::Applied { recorded, retention } => format!(
            "will be settled as applied: for {} retries are answered with this {} ({}, {} bytes)",
            brief(*retention),
            class_name(recorded.class),
            format_name(recorded.format),
            recorded.payload.len()
        ),
        Verdict::NotApplied => {
            "will be settled as not applied: the key becomes free and the next request with it \
             RUNS THE OPERATION; an owner that is still alive can no longer record its result"
                .to_owned()
        }
    }
}

async fn report(
    store: &dyn Store,
    found: &Found,
    done: &'static str,
    context: &Context,
) -> Result<(), Failure> {
    if !context.output.json {
        return context.output.text(&format!("{}  {done}", found.record.key.id));
    }
    let looked_up = store.get(&found.record.key.id).await;
    let Ok(hapax_core::Lookup::Found { record, now }) = looked_up else {
        return context.output.document(&serde_json::json!({ "done": done, "record": null }));
    };
    let record = RecordView::new(&record, now, Payload::Hidden);
    context.output.document(&Document { done: Some(done), record, now_ms: now.as_millis() })
}

/// The result that retries will get.
fn recorded(settle: &Settle) -> Result<Recorded, Failure> {
    let class = settle.class.into();
    if let Some(json) = &settle.json_value {
        return Ok(Recorded::new(class, Format::FUNCTION, checked_json(json.clone().into_bytes())?));
    }
    let payload = match (&settle.payload, &settle.payload_file) {
        (Some(text), _) => text.clone().into_bytes(),
        (None, Some(path)) => read(path)?,
        (None, None) => return Ok(Recorded::new(class, Format::NOT_KEPT, Vec::new())),
    };
    let format = settle.format.into();
    let payload = if format == Format::FUNCTION { checked_json(payload)? } else { payload };
    Ok(Recorded::new(class, format, payload))
}

/// A function decodes its stored result as JSON: what is none would make the key useless.
fn checked_json(bytes: Vec<u8>) -> Result<Vec<u8>, Failure> {
    match serde_json::from_slice::<serde::de::IgnoredAny>(&bytes) {
        Ok(_) => Ok(bytes),
        Err(error) => Err(Failure::new(Code::InputInvalid, "the result is not JSON")
            .because(error)
            .hint("a text is JSON only in double quotes: --json-value '\"done\"'")),
    }
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

#[cfg(test)]
mod tests;
