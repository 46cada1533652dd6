//! The page of a record: its timeline, its details and the possible actions.

use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use hapax_core::{State as RecordState, Timestamp};
use serde::Deserialize;

use super::{formatting, render};
use crate::api;
use crate::auth::Actor;
use crate::extract::{Id, QueryParams};
use crate::failure::Failure;
use crate::listener::Shared;
use crate::records::timeline::{Event, timeline};
use crate::time::{relative, rfc3339};
use crate::view::{RecordView, RecordedView, or_dash};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PageQuery {
    payload: bool,
    done: String,
}

#[derive(Template)]
#[template(path = "console/record.html")]
struct RecordPage<'a> {
    record: &'a RecordView,
    short_id: String,
    state: &'static str,
    operation: String,
    namespace: String,
    principal: &'a str,
    summary: String,
    content: Option<String>,
    events: Vec<TimelineRow>,
    advice: &'static str,
    actions: &'static [(&'static str, &'static str, &'static str)],
    done: Option<&'static str>,
}

impl RecordPage<'_> {
    fn here(&self) -> &'static str {
        "/records"
    }
}

/// An event of the timeline as it is shown.
struct TimelineRow {
    what: String,
    at: String,
    relative: String,
    is_past: bool,
    is_bad: bool,
}

impl TimelineRow {
    fn new(event: Event, now: Timestamp) -> Self {
        Self {
            is_bad: event.what.contains("uncertain") || event.what.contains("lapsed"),
            what: formatting::sentence(&event.what),
            at: rfc3339(event.at).unwrap_or_else(|| "never".to_owned()),
            relative: relative(event.at, now),
            is_past: event.at <= now,
        }
    }
}

pub(super) async fn page(
    State(shared): State<Arc<Shared>>,
    Extension(actor): Extension<Actor>,
    Id(id): Id,
    QueryParams(query): QueryParams<PageQuery>,
) -> Result<Response, Failure> {
    let document = api::read_record(&shared, actor, id, query.payload).await?;
    let (record, now) = (&document.record, document.now());
    let content = record.recorded.as_ref().filter(|_| query.payload).map(content);
    let (advice, actions) = next_steps(record);
    Ok(render(&RecordPage {
        record,
        short_id: formatting::short_id(&record.id),
        state: record.state().name(),
        operation: or_dash(&record.scope.operation),
        namespace: or_dash(&record.scope.namespace),
        principal: record.scope.principal.as_deref().unwrap_or("-"),
        summary: record.recorded.as_ref().map_or_else(|| "none".to_owned(), RecordedView::summary),
        content,
        events: timeline(record, now).into_iter().map(|event| TimelineRow::new(event, now)).collect(),
        advice,
        actions,
        done: done_words(&query.done),
    }))
}

fn content(recorded: &RecordedView) -> String {
    let head = recorded.head().map(|head| format!("{head}\n")).into_iter();
    let meta = recorded.unread_meta().map(|digits| format!("meta (hexadecimal)\n{digits}\n")).into_iter();
    let payload = recorded.payload.iter().cloned();
    let digits = recorded.payload_hex.iter().map(|digits| format!("payload (hexadecimal)\n{digits}"));
    head.chain(meta).chain(payload).chain(digits).collect::<Vec<_>>().join("\n")
}

type Actions = &'static [(&'static str, &'static str, &'static str)];

fn next_steps(record: &RecordView) -> (&'static str, Actions) {
    const DELETE: (&str, &str, &str) = ("delete", "Delete", "danger");
    const DECIDE: Actions =
        &[("settle", "It happened", "primary"), ("release", "It did not happen", ""), DELETE];
    match record.state() {
        RecordState::Uncertain if record.is_http() => (
            "Check in the affected system whether the request was executed, then settle the record with the status and \
             the body that retries should receive. They are refused until then.",
            DECIDE,
        ),
        RecordState::Uncertain => (
            "Check in the affected system whether the operation happened, then settle the record. \
             Retries are refused until then.",
            DECIDE,
        ),
        RecordState::InProgress => ("Wait: the operation is in progress.", &[]),
        RecordState::Completed | RecordState::Failed => {
            ("Nothing: retries receive the stored result.", &[DELETE])
        }
        RecordState::Released => ("Nothing: the next request with the key runs it.", &[DELETE]),
    }
}

fn done_words(done: &str) -> Option<&'static str> {
    match done {
        "settle" => Some("Settled as applied. Retries now receive the result."),
        "release" => Some("Released. The next request with the key runs the operation."),
        _ => None,
    }
}
