//! One record: its story, its facts, and what could be done about it.

use std::sync::Arc;

use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use hapax_core::{State as RecordState, Timestamp};
use serde::Deserialize;

use super::{formatting, shown};
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
pub(super) struct Asking {
    payload: bool,
    done: String,
}

#[derive(Template)]
#[template(path = "console/record.html")]
struct Record<'a> {
    record: &'a RecordView,
    short_id: String,
    state: &'static str,
    operation: String,
    namespace: String,
    principal: &'a str,
    summary: String,
    content: Option<String>,
    events: Vec<Moment>,
    advice: &'static str,
    actions: &'static [(&'static str, &'static str, &'static str)],
    done: Option<&'static str>,
}

impl Record<'_> {
    fn here(&self) -> &'static str {
        "/records"
    }
}

/// An event of the story as it is shown.
struct Moment {
    what: String,
    at: String,
    relative: String,
    is_past: bool,
    is_bad: bool,
}

impl Moment {
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
    QueryParams(asking): QueryParams<Asking>,
) -> Result<Response, Failure> {
    let document = api::shown(&shared, actor, id, asking.payload).await?;
    let (record, now) = (&document.record, document.now());
    let content = record.recorded.as_ref().filter(|_| asking.payload).map(content);
    let (advice, actions) = next_steps(record);
    Ok(shown(&Record {
        record,
        short_id: formatting::short_id(&record.id),
        state: record.state().name(),
        operation: or_dash(&record.scope.operation),
        namespace: or_dash(&record.scope.namespace),
        principal: record.scope.principal.as_deref().unwrap_or("-"),
        summary: record.recorded.as_ref().map_or_else(|| "none".to_owned(), RecordedView::summary),
        content,
        events: timeline(record, now).into_iter().map(|event| Moment::new(event, now)).collect(),
        advice,
        actions,
        done: done_words(&asking.done),
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
            "Find out in the system it acts on whether the request was carried out, then settle it, with the status \
             and the body that its retries should get. They are refused until then.",
            DECIDE,
        ),
        RecordState::Uncertain => (
            "Find out in the system it acts on whether the operation happened, then settle it. \
             Retries are refused until then.",
            DECIDE,
        ),
        RecordState::InProgress => ("Wait: somebody is working on it.", &[]),
        RecordState::Completed | RecordState::Failed => {
            ("Nothing: retries are answered with the stored result.", &[DELETE])
        }
        RecordState::Released => ("Nothing: the next request with the key runs it.", &[DELETE]),
    }
}

fn done_words(done: &str) -> Option<&'static str> {
    match done {
        "settle" => Some("Settled as applied. Retries are answered from now on."),
        "release" => Some("Released. The next request with the key runs the operation."),
        _ => None,
    }
}
