//! `hapax records show`: shows a record, its history and the next steps.

use hapax_admin::records::timeline::timeline;
use hapax_admin::text::printable;
use hapax_admin::view::{Document, Payload, ReasonView, RecordView, RecordedView, or_dash};
use hapax_core::State;

use super::{Target, find::find};
use crate::args::Show;
use crate::failure::Failure;
use crate::stores::Access;

pub(super) async fn run(show: &Show, target: &Target<'_>) -> Result<(), Failure> {
    let source = target.open(Access::Read).await?;
    let payload = if show.payload { Payload::Shown } else { Payload::Hidden };
    let found = find(&source, &show.name, payload).await?;
    let output = target.output();
    if output.json { output.document(&found) } else { output.text(&text(&found, payload, target)) }
}

fn text(found: &Document, payload: Payload, target: &Target<'_>) -> String {
    let (record, now) = (&found.record, found.now());
    let mut lines = head(record);
    lines.push(String::new());
    lines.extend(timeline(record, now).into_iter().map(|event| event.line(now)));
    lines.push(String::new());
    lines.extend(next_steps(record, target));
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

/// The stored result itself; binary content in hexadecimal.
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

/// The flags that give the result, which depend on the kind of record.
fn result_words(record: &RecordView) -> &'static str {
    if record.is_http() { "--status CODE --body-json BODY" } else { "--json-value RESULT" }
}

/// The commands to run next.
fn next_steps(record: &RecordView, target: &Target<'_>) -> Vec<String> {
    let id = &record.id;
    let command = |rest: String| format!("           {}", target.command_line(&rest));
    match record.state() {
        State::Uncertain => {
            let mut lines = vec![
                "next       check in the system it acts on whether the operation happened, then settle it with"
                    .to_owned(),
                command(format!("records settle {id} --applied {}", result_words(record))),
                "           if it happened, or with".to_owned(),
                command(format!("records settle {id} --not-applied")),
                "           if it did not; retries are refused until then".to_owned(),
            ];
            if record.reason == Some(ReasonView::Lapsed) {
                lines.push("           a slow owner may still complete it".to_owned());
            }
            lines
        }
        State::InProgress => vec!["next       wait: its owner is working on it".to_owned()],
        State::Completed | State::Failed => {
            vec!["next       nothing: retries receive the stored result".to_owned()]
        }
        State::Released => vec!["next       nothing: the next request with the key runs it".to_owned()],
    }
}

#[cfg(test)]
mod tests;
