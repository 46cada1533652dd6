//! `hapax records show`: one record's story, and what somebody could do next.

use hapax_core::{Format, Reason, Record, Recorded, State, Status, Timestamp};

use super::{Context, Document, Found, command_line, find::find};
use crate::args::Show;
use crate::failure::Failure;
use crate::output::printable;
use crate::stores::Access;
use crate::time::{relative, rfc3339};
use crate::view::{Payload, RecordView, class_name, format_name, hex, or_dash, reason_at, state_words};

pub(super) async fn run(show: &Show, context: &Context) -> Result<(), Failure> {
    let store = context.store.open_shared(Access::Read)?;
    let found = find(&*store, &show.name, context).await?;
    let payload = if show.payload { Payload::Shown } else { Payload::Hidden };
    if context.output.json {
        let record = RecordView::new(&found.record, found.now, payload);
        return context.output.document(&Document { done: None, record, now_ms: found.now.as_millis() });
    }
    context.output.text(&text(&found, payload, context))
}

fn text(found: &Found, payload: Payload, context: &Context) -> String {
    let Found { record, now } = found;
    let mut lines = head(record, *now);
    lines.push(String::new());
    lines.extend(story(record, *now).into_iter().map(|event| event.line(*now)));
    lines.push(String::new());
    lines.extend(next_steps(record, *now, context));
    if let (Payload::Shown, Some(recorded)) = (payload, record.recorded()) {
        lines.push(String::new());
        lines.extend(content(recorded));
    }
    lines.join("\n")
}

fn head(record: &Record, now: Timestamp) -> Vec<String> {
    let scope = &record.key.scope;
    let principal = scope.principal_hash().map_or("-".to_owned(), |hash| hex(hash.as_bytes()));
    let mut lines = vec![
        format!("record     {}", record.key.id),
        format!("operation  {}", or_dash(scope.operation())),
        format!("namespace  {}", or_dash(scope.namespace())),
        format!("principal  {principal}"),
        format!("state      {}", state_words(record, now)),
        format!("attempt    {}", record.fence.attempt),
    ];
    lines.extend(record.recorded().map(|recorded| format!("result     {}", summary(recorded))));
    lines
}

fn summary(recorded: &Recorded) -> String {
    let class = class_name(recorded.class);
    if recorded.format == Format::NOT_KEPT {
        return format!("{class}, what was answered was not kept");
    }
    format!("{class}, {}, {} bytes", format_name(recorded.format), recorded.len())
}

/// The stored result itself; what is no text is shown in digits.
fn content(recorded: &Recorded) -> Vec<String> {
    let mut lines = Vec::new();
    if !recorded.meta.is_empty() {
        lines.push(format!("meta (hexadecimal)\n{}", hex(&recorded.meta)));
    }
    lines.push(match std::str::from_utf8(&recorded.payload) {
        Ok(text) => format!("payload\n{}", text.split('\n').map(printable).collect::<Vec<_>>().join("\n")),
        Err(_) => format!("payload (hexadecimal)\n{}", hex(&recorded.payload)),
    });
    lines
}

/// Something that happened, or will.
#[derive(PartialEq, Eq, Debug)]
struct Event {
    at: Timestamp,
    what: String,
}

impl Event {
    fn line(&self, now: Timestamp) -> String {
        let at = rfc3339(self.at).unwrap_or_else(|| "never".to_owned());
        format!("{at:<24}  {:<12}  {}", relative(self.at, now), self.what)
    }
}

/// What is known of the record's life, in order.
fn story(record: &Record, now: Timestamp) -> Vec<Event> {
    let attempt = record.fence.attempt;
    let event = |at, what: String| Event { at, what };
    let mut events = vec![event(record.created_at, "first claimed".to_owned())];
    match &record.status {
        Status::InProgress { lease_until } => {
            if attempt > 1 {
                events.push(event(record.updated_at, format!("claimed by attempt {attempt}")));
            }
            events.push(event(
                *lease_until,
                if *lease_until <= now {
                    format!("lease of attempt {attempt} lapsed: nobody knows whether the operation happened")
                } else {
                    "the lease ends unless its owner renews it".to_owned()
                },
            ));
        }
        Status::Pinned { recorded } => {
            let how = class_name(recorded.class);
            events.push(event(record.updated_at, format!("pinned after attempt {attempt}, class {how}")));
        }
        Status::Uncertain { reason } => {
            events.push(event(record.updated_at, format!("uncertain: {}", reason_words(*reason))));
        }
        Status::Released { answered } => events.push(event(
            record.updated_at,
            match answered {
                Some(_) => {
                    format!("attempt {attempt} released the key after an answer that asks for a retry")
                }
                None => format!("the key was released: attempt {attempt} did nothing"),
            },
        )),
    }
    events.push(event(record.expires_at, end_words(record, now)));
    events
}

fn reason_words(reason: Reason) -> &'static str {
    match reason {
        Reason::Lapsed => "the lease ended without a word from its owner",
        Reason::Panicked => "the handler panicked",
        Reason::Restarted => "the process that ran it ended before it did",
        Reason::Declared => "the handler said that it does not know",
    }
}

fn end_words(record: &Record, now: Timestamp) -> String {
    let over = record.expires_at <= now;
    let words = match (record.state_at(now), over) {
        (State::InProgress | State::Uncertain, false) => "if nobody settles it, a sweep drops the record",
        (State::InProgress | State::Uncertain, true) => "due: the next sweep drops the record",
        (State::Released, false) => "the tombstone ends",
        (State::Completed | State::Failed, false) => "the retention ends, the key is as good as new",
        (_, true) => "its time is over: the key is as good as new, a sweep removes the record",
    };
    words.to_owned()
}

/// What somebody who looks at this record at night would want to type.
fn next_steps(record: &Record, now: Timestamp, context: &Context) -> Vec<String> {
    let id = record.key.id;
    let command = |rest: String| format!("           {}", command_line(context, &rest));
    match record.state_at(now) {
        State::Uncertain => {
            let mut lines = vec![
                "next       find out in the system it acts on whether the operation happened, then settle it with"
                    .to_owned(),
                command(format!("records settle {id} --applied --json-value RESULT")),
                "           when it happened, or with".to_owned(),
                command(format!("records settle {id} --not-applied")),
                "           when it did not; retries are refused until then".to_owned(),
            ];
            if reason_at(record, now) == Some(Reason::Lapsed) {
                lines
                    .push("           an owner that is only slow may still complete it by itself".to_owned());
            }
            lines
        }
        State::InProgress => vec!["next       wait: somebody is working on it".to_owned()],
        State::Completed | State::Failed => {
            vec!["next       nothing: retries are answered with the stored result".to_owned()]
        }
        State::Released => vec!["next       nothing: the next request with the key runs it".to_owned()],
    }
}

#[cfg(test)]
mod tests;
