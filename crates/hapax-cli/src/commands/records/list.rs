//! `hapax records list`: which records there are.

use hapax_core::{Page, Query, Store};
use serde_json::json;

use super::find::{id_prefix, parse_digits, parse_key};
use super::{Context, command_line, quoted};
use crate::args::List;
use crate::failure::Failure;
use crate::output::note;
use crate::stores::Access;
use crate::view::{Payload, ROW_HEADER, RecordView, row};

pub(super) async fn run(list: &List, context: &Context) -> Result<(), Failure> {
    let mut query = query(list)?;
    let store = context.store.open_shared(Access::Read)?;
    if context.output.json {
        return as_document(&*store, query, list.all, context).await;
    }
    let mut count = 0;
    loop {
        let page = read(&*store, &query, context).await?;
        // In a pipe all pages are one table; on a terminal each has its own frame.
        let header = (count == 0 || context.output.terminal).then_some(&ROW_HEADER[..]);
        count += page.records.len() + page.unreadable.len();
        print(&page, header, context)?;
        query.cursor = page.next;
        if !list.all || query.cursor.is_none() {
            break;
        }
    }
    match &query.cursor {
        Some(next) => note(&format!(
            "there are more: add --all, or go on with {}",
            command_line(context, &format!("records list --cursor {}", quoted(next)))
        )),
        None if count == 0 => note("no record matches"),
        None => {}
    }
    Ok(())
}

fn query(list: &List) -> Result<Query, Failure> {
    let id_prefix = match (&list.id, &list.key) {
        (Some(id), _) => Some(parse_digits(id)?),
        (None, Some(key)) => Some(id_prefix(&parse_key(key)?)),
        (None, None) => None,
    };
    Ok(Query {
        states: list.state.clone(),
        namespace: list.namespace.clone(),
        operation_prefix: list.operation.clone(),
        id_prefix,
        age_min: list.older_than,
        age_max: list.newer_than,
        limit: list.limit as usize,
        cursor: list.cursor.clone(),
    })
}

async fn read(store: &dyn Store, query: &Query, context: &Context) -> Result<Page, Failure> {
    store.list(query).await.map_err(|error| Failure::store(error, format!("cannot list {}", context.store)))
}

fn print(page: &Page, header: Option<&[&str]>, context: &Context) -> Result<(), Failure> {
    if !page.records.is_empty() {
        let terminal = context.output.terminal;
        let rows = page.records.iter().map(|record| row(record, page.now, terminal)).collect();
        context.output.table(header, rows)?;
    }
    for id in &page.unreadable {
        note(&format!("warning: the record {id} cannot be read; it counts as uncertain"));
    }
    Ok(())
}

async fn as_document(
    store: &dyn Store,
    mut query: Query,
    all: bool,
    context: &Context,
) -> Result<(), Failure> {
    let mut records = Vec::new();
    let mut unreadable = Vec::new();
    loop {
        let page = read(store, &query, context).await?;
        // Turned into views at once: a view holds no payload, so a long listing stays small.
        records.extend(page.records.iter().map(|record| RecordView::new(record, page.now, Payload::Hidden)));
        unreadable.extend(page.unreadable.iter().map(ToString::to_string));
        query.cursor = page.next;
        if !all || query.cursor.is_none() {
            let now_ms = page.now.as_millis();
            return context.output.document(&json!({
                "records": records, "unreadable": unreadable, "next": query.cursor, "now_ms": now_ms
            }));
        }
    }
}
