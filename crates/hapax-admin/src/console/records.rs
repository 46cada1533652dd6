//! The records page: a table with filters, and the search for a key.

use std::sync::Arc;

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use hapax_core::{State as RecordState, Timestamp};
use serde::Deserialize;

use super::{formatting, render};
use crate::api::Filter;
use crate::extract::{FormBody, QueryParams};
use crate::failure::Failure;
use crate::listener::Shared;
use crate::problem::status as status_of;
use crate::query::query_value;
use crate::records::name::{id_prefix, parse_key};
use crate::time::{parse_duration, relative};
use crate::view::{PageView, RecordView, StateView, or_dash};

/// The records of one page.
const ROWS_MAX: u32 = 50;

/// Filters by age, with their labels: at most with `<`, at least with `>`.
pub(crate) const AGES: [(&str, &str); 6] = [
    ("", "at any time"),
    ("<5m", "in the last 5 minutes"),
    ("<1h", "in the last hour"),
    ("<1d", "in the last day"),
    (">1h", "more than an hour ago"),
    (">1d", "more than a day ago"),
];

/// The filters in the URL. An empty field does not filter.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Filters {
    state: String,
    operation: String,
    namespace: String,
    id: String,
    age: String,
    cursor: String,
    done: String,
}

impl Filters {
    /// Whether there is no filter.
    fn is_bare(&self) -> bool {
        [&self.state, &self.operation, &self.namespace, &self.id, &self.age].iter().all(|it| it.is_empty())
    }

    /// The URL of these filters at a cursor.
    fn link(&self, cursor: &str) -> String {
        let fields = [
            ("state", &*self.state),
            ("operation", &self.operation),
            ("namespace", &self.namespace),
            ("id", &self.id),
            ("age", &self.age),
            ("cursor", cursor),
        ];
        let set = fields.into_iter().filter(|(_, value)| !value.is_empty());
        let query: Vec<_> = set.map(|(name, value)| format!("{name}={}", query_value(value))).collect();
        format!("/records?{}", query.join("&"))
    }

    fn filter(&self) -> Filter {
        let some = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        let age = |sign: char| {
            let span = self.age.strip_prefix(sign).and_then(|span| parse_duration(span).ok())?;
            u64::try_from(span.as_millis()).ok()
        };
        Filter {
            state: RecordState::from_name(&self.state).map(StateView::from).into_iter().collect(),
            namespace: some(&self.namespace),
            operation: some(&self.operation),
            id: some(&self.id),
            key: None,
            older_than_ms: age('>'),
            newer_than_ms: age('<'),
            limit: Some(ROWS_MAX),
            cursor: some(&self.cursor),
        }
    }
}

#[derive(Template)]
#[template(path = "console/records.html")]
struct RecordsPage<'a> {
    filters: &'a Filters,
    states: &'a [&'static str],
    rows: Vec<Row>,
    unreadable: Vec<String>,
    next: Option<&'a str>,
    problem: Option<String>,
    done: Option<&'static str>,
}

impl RecordsPage<'_> {
    fn here(&self) -> &'static str {
        "/records"
    }
}

struct Row {
    id: String,
    short_id: String,
    state: &'static str,
    state_words: String,
    operation: String,
    namespace: String,
    attempt: u32,
    updated: String,
    updated_at: String,
    expires: String,
}

impl Row {
    fn new(record: RecordView, now: Timestamp) -> Self {
        Self {
            short_id: formatting::short_id(&record.id),
            state: record.state().name(),
            state_words: formatting::state(&record.state_words()),
            operation: or_dash(&record.scope.operation),
            namespace: or_dash(&record.scope.namespace),
            attempt: record.attempt,
            updated: relative(record.updated(), now),
            updated_at: record.updated_at.clone().unwrap_or_default(),
            expires: relative(record.expires(), now),
            id: record.id,
        }
    }
}

pub(super) async fn page(
    State(shared): State<Arc<Shared>>,
    QueryParams(filters): QueryParams<Filters>,
) -> Result<Response, Failure> {
    let found = match filters.filter().query() {
        Ok(query) => shared.records.page(&query).await,
        Err(failure) => Err(failure),
    };
    Ok(listing(&filters, found))
}

fn listing(filters: &Filters, found: Result<PageView, Failure>) -> Response {
    let states: Vec<_> = RecordState::ALL.iter().map(|state| state.name()).collect();
    let done = (filters.done == "deleted").then_some("The record was deleted.");
    let (page, failure) = match found {
        Ok(page) => (page, None),
        Err(failure) => (PageView::default(), Some(failure)),
    };
    let now = page.now();
    let mut response = render(&RecordsPage {
        filters,
        states: &states,
        next: page.next.as_deref(),
        rows: page.records.into_iter().map(|record| Row::new(record, now)).collect(),
        unreadable: page.unreadable,
        problem: failure.as_ref().map(|failure| formatting::sentence(failure.message())),
        done,
    });
    if let Some(failure) = failure {
        *response.status_mut() = status_of(failure.code());
    }
    response
}

#[derive(Deserialize)]
pub(super) struct Search {
    key: String,
}

/// Redirects from a key to the start of the ids of its records, so that no URL contains the key.
pub(super) async fn search(FormBody(search): FormBody<Search>) -> Response {
    match parse_key(search.key.trim()) {
        Ok(key) => Redirect::to(&format!("/records?id={}", id_prefix(&key))).into_response(),
        Err(failure) => listing(&Filters::default(), Err(failure)),
    }
}
