//! The audit log as a page.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;

use super::{formatting, render};
use crate::api::audit_page;
use crate::audit::{Action, Entry};
use crate::extract::QueryParams;
use crate::failure::Failure;
use crate::listener::Shared;

/// Entries on one page.
const ROWS_MAX: usize = 100;

#[derive(Template)]
#[template(path = "console/audit.html")]
struct AuditLogPage {
    entries: Vec<Row>,
    next: Option<u64>,
    place: String,
}

impl AuditLogPage {
    fn here(&self) -> &'static str {
        "/audit"
    }
}

struct Row {
    at: String,
    who: String,
    what: &'static str,
    id: Option<String>,
    short_id: String,
    reason: String,
    result: String,
    colour: &'static str,
}

impl From<Entry> for Row {
    fn from(entry: Entry) -> Self {
        let who = if entry.actor.is_empty() { "unknown" } else { &entry.actor };
        let (result, colour) = match entry.result.as_deref() {
            Some("done") => ("done".to_owned(), "completed"),
            Some(code) => (code.to_owned(), "failed"),
            None => ("unknown".to_owned(), "uncertain"),
        };
        Self {
            who: format!("{who}, {} from {}", entry.via, entry.address),
            what: action_words(entry.action),
            short_id: entry.id.as_deref().map(formatting::short_id).unwrap_or_default(),
            id: entry.id,
            reason: entry.reason.filter(|reason| !reason.is_empty()).unwrap_or_else(|| "–".to_owned()),
            at: entry.at,
            result,
            colour,
        }
    }
}

const fn action_words(action: Action) -> &'static str {
    match action {
        Action::Login => "logged in",
        Action::ShowPayload => "viewed the result",
        Action::SettleApplied => "settled as applied",
        Action::SettleNotApplied => "settled as not applied",
        Action::Release => "released the key",
        Action::Delete => "deleted the record",
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PageQuery {
    before: Option<u64>,
}

pub(super) async fn page(
    State(shared): State<Arc<Shared>>,
    QueryParams(query): QueryParams<PageQuery>,
) -> Result<Response, Failure> {
    let page = audit_page(&shared, query.before, ROWS_MAX);
    let place = match shared.audit.path() {
        Some(path) => format!("Every action, newest first. The whole log is the file {}.", path.display()),
        None => "Every action, newest first. The store is in memory, and so is this log.".to_owned(),
    };
    let entries = page.entries.into_iter().map(Row::from).collect();
    Ok(render(&AuditLogPage { entries, next: page.next, place }))
}
