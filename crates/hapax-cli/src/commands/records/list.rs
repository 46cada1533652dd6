//! `hapax records list`: lists records.

use std::time::Duration;

use hapax_admin::records::name::{id_prefix, parse_digits, parse_key};
use hapax_admin::view::{PageView, ROW_HEADER};
use hapax_core::Query;

use super::Target;
use super::source::Source;
use crate::args::{LIMIT_DEFAULT, List};
use crate::failure::Failure;
use crate::output::{Output, note, quoted};
use crate::progress::Progress;
use crate::stores::Access;

pub(super) async fn run(list: &List, target: &Target<'_>) -> Result<(), Failure> {
    let mut query = query(list)?;
    let output = target.output();
    let source = target.open(Access::Read).await?;
    // Pages that appear on a terminal need no progress line.
    let is_seen = output.terminal && !output.json;
    let mut progress = if is_seen { Progress::unseen() } else { Progress::new() };
    if output.json {
        let listing = everything(&source, query, list.all, &mut progress).await?;
        drop(progress);
        return output.document(&listing);
    }
    let mut count = 0;
    loop {
        let page = source.page(&query).await?;
        // Piped output is one table; on a terminal each page has its own frame.
        let header = (count == 0 || output.terminal).then_some(&ROW_HEADER[..]);
        count += page.records.len() + page.unreadable.len();
        print(&page, header, output)?;
        query.cursor = page.next;
        if !list.all || query.cursor.is_none() {
            break;
        }
        progress.show(format_args!("{count} record(s) so far"));
    }
    drop(progress);
    match &query.cursor {
        Some(next) => note(&format!(
            "there are more: add --all, or continue with {}",
            target.command_line(&format!("records list{} --cursor {}", filters(list, &query), quoted(next)))
        )),
        None if count == 0 => note("no record matches"),
        None => {}
    }
    Ok(())
}

/// The flags of the listing, to be typed again. A key is replaced by the prefix of ids that it stands for.
fn filters(list: &List, query: &Query) -> String {
    let millis = |span: &Duration| format!("{}ms", span.as_millis());
    let states = list.state.iter().map(|state| ("--state", state.name().to_owned()));
    let others = [
        ("--namespace", list.namespace.clone()),
        ("--operation", list.operation.clone()),
        ("--id", query.id_prefix.clone()),
        ("--older-than", list.older_than.as_ref().map(millis)),
        ("--newer-than", list.newer_than.as_ref().map(millis)),
        ("--limit", Some(list.limit.to_string()).filter(|_| list.limit != LIMIT_DEFAULT)),
    ];
    let others = others.into_iter().filter_map(|(flag, value)| Some((flag, value?)));
    states.chain(others).map(|(flag, value)| format!(" {flag} {}", quoted(&value))).collect()
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

fn print(page: &PageView, header: Option<&[&str]>, output: Output) -> Result<(), Failure> {
    if !page.records.is_empty() {
        let rows = page.records.iter().map(|record| record.row(page.now(), output.terminal)).collect();
        output.table(header, rows)?;
    }
    for id in &page.unreadable {
        note(&format!("warning: the record {id} cannot be read; it counts as uncertain"));
    }
    Ok(())
}

/// The requested page, or all pages as one. Views in a listing hold no payload, so they stay small.
async fn everything(
    source: &Source,
    mut query: Query,
    all: bool,
    progress: &mut Progress,
) -> Result<PageView, Failure> {
    let mut listing = source.page(&query).await?;
    while all && listing.next.is_some() {
        query.cursor = listing.next.take();
        progress.show(format_args!("{} record(s) so far", listing.records.len() + listing.unreadable.len()));
        listing.append(source.page(&query).await?);
    }
    Ok(listing)
}
