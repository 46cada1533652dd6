//! `hapax records show`: one record's story, and what somebody could do next.

use hapax_core::State;

use super::{Place, find::find};
use crate::args::Show;
use crate::failure::Failure;
use crate::output::printable;
use crate::records::story::story;
use crate::stores::Access;
use crate::view::{Document, Payload, ReasonView, RecordView, RecordedView, or_dash};

pub(super) async fn run(show: &Show, place: &Place<'_>) -> Result<(), Failure> {
    let source = place.open(Access::Read).await?;
    let payload = if show.payload { Payload::Shown } else { Payload::Hidden };
    let found = find(&source, &show.name, payload).await?;
    let output = place.output();
    if output.json { output.document(&found) } else { output.text(&text(&found, payload, place)) }
}

fn text(found: &Document, payload: Payload, place: &Place<'_>) -> String {
    let (record, now) = (&found.record, found.now());
    let mut lines = head(record);
    lines.push(String::new());
    lines.extend(story(record, now).into_iter().map(|event| event.line(now)));
    lines.push(String::new());
    lines.extend(next_steps(record, place));
    if let (Payload::Shown, Some(recorded)) = (payload, &record.recorded) {
        lines.push(String::new());
        lines.extend(content(recorded));
    }
    lines.join("\n")
}

fn head(record: &RecordView) -> Vec<String> {
    let scope = &record.scope;
    let mut lines = vec![
        format!("record     {}", record.id),
        format!("operation  {}", or_dash(&scope.operation)),
        format!("namespace  {}", or_dash(&scope.namespace)),
        format!("principal  {}", scope.principal.as_deref().unwrap_or("-")),
        format!("state      {}", record.state_words()),
        format!("attempt    {}", record.attempt),
    ];
    lines.extend(record.recorded.iter().map(|recorded| format!("result     {}", recorded.summary())));
    lines
}

/// The stored result itself; what is no text is shown in digits.
fn content(recorded: &RecordedView) -> Vec<String> {
    let mut lines = recorded.head().map_or_else(Vec::new, |head| vec![format!("head\n{head}")]);
    lines.extend(recorded.unread_meta().map(|digits| format!("meta (hexadecimal)\n{digits}")));
    lines.extend(
        recorded.payload.iter().map(|text| {
            format!("payload\n{}", text.split('\n').map(printable).collect::<Vec<_>>().join("\n"))
        }),
    );
    lines.extend(recorded.payload_hex.iter().map(|digits| format!("payload (hexadecimal)\n{digits}")));
    lines
}

/// How the result is given, which depends on who retries.
fn result_words(record: &RecordView) -> &'static str {
    if record.is_http() { "--status CODE --body-json BODY" } else { "--json-value RESULT" }
}

/// What somebody who looks at this record at night would want to type.
fn next_steps(record: &RecordView, place: &Place<'_>) -> Vec<String> {
    let id = &record.id;
    let command = |rest: String| format!("           {}", place.command_line(&rest));
    match record.state() {
        State::Uncertain => {
            let mut lines = vec![
                "next       find out in the system it acts on whether the operation happened, then settle it with"
                    .to_owned(),
                command(format!("records settle {id} --applied {}", result_words(record))),
                "           when it happened, or with".to_owned(),
                command(format!("records settle {id} --not-applied")),
                "           when it did not; retries are refused until then".to_owned(),
            ];
            if record.reason == Some(ReasonView::Lapsed) {
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
