//! Listing and counting, by going through the whole table: it has no order to page by.
//!
//! A page reads the heads of all records and keeps the newest ones in memory, as many as the page holds. It is for people,
//! takes time in proportion to the number of records, and is charged for as reading the table. A second index would be
//! paid for with every claim and could not be read consistently.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use hapax_core::{Lookup, Page, Query, RecordId, Stats, StoreError, Timestamp, codec};
use serde_json::Value;

use crate::error::{Effect, Refusal};
use crate::item;
use crate::link::Link;
use crate::scan::{Scan, name};
use crate::store::get;

/// How many records a page holds at most, whatever it is asked for.
const PAGE_MAX: usize = 10_000;

/// What DynamoDB counts for an item beside its attributes' values: their names and a hundred bytes of its own.
const ITEM_BYTES: u64 = 220;

/// Where a record stands in a listing: the newest first, and those of one moment by id. What cannot be read has no age
/// and comes last.
type Place = (Reverse<Timestamp>, RecordId);

/// One page of `query`.
pub(crate) async fn list(link: &Link, query: &Query) -> Result<Page, StoreError> {
    let after = match &query.cursor {
        Some(cursor) => {
            Some(parse_cursor(cursor).ok_or_else(|| Refusal::Cursor.error("list", Effect::Read))?)
        }
        None => None,
    };
    let limit = query.limit.min(PAGE_MAX);
    let mut page = Page { now: link.time.now(), ..Page::default() };
    if limit == 0 {
        return Ok(page);
    }
    // One more than the page holds, to know whether there is a next one.
    let mut places: BTreeSet<Place> = BTreeSet::new();
    let mut scan = Scan::records(link, "list");
    while let Some(items) = scan.next().await? {
        for item in items {
            let Some(place) = place(&item, query, link.time.now()) else { continue };
            if after.is_none_or(|after| place > after) {
                places.insert(place);
            }
            if places.len() > limit + 1 {
                places.pop_last();
            }
        }
    }
    let has_more = places.len() > limit;
    let shown: Vec<Place> = places.into_iter().take(limit).collect();
    if has_more {
        page.next = shown.last().map(format_cursor);
    }
    for (_, id) in shown {
        match get(link, "list", &id).await? {
            Lookup::Found { record, .. } => page.records.push(*record),
            Lookup::Unreadable { .. } => page.unreadable.push(id),
            Lookup::Absent => {}
        }
    }
    page.now = link.time.now();
    Ok(page)
}

/// Counts all records.
pub(crate) async fn stats(link: &Link) -> Result<Stats, StoreError> {
    let mut stats = Stats::default();
    let mut scan = Scan::records(link, "stats");
    while let Some(items) = scan.next().await? {
        for item in items {
            let head = item::bytes(&item, "head").unwrap_or_default();
            let outcome = item::unsigned(&item, "outcome_bytes").unwrap_or_default();
            stats.bytes += ITEM_BYTES + head.len() as u64 + outcome;
            let record = RecordId::parse(name(&item)).and_then(|id| codec::decode_head(&id, &head).ok());
            if let Some(record) = record {
                stats.count(record.state_at(link.time.now()));
            }
        }
    }
    Ok(stats)
}

/// Where a record stands, if it is asked for. What cannot be read is, unless its id says otherwise.
fn place(item: &Value, query: &Query, now: Timestamp) -> Option<Place> {
    let id = RecordId::parse(name(item))?;
    if query.id_prefix.as_deref().is_some_and(|prefix| !name(item).starts_with(prefix)) {
        return None;
    }
    match item::bytes(item, "head").and_then(|head| codec::decode_head(&id, &head).ok()) {
        Some(record) => query.admits(&record, now).then_some((Reverse(record.created_at), id)),
        None => Some((Reverse(Timestamp::default()), id)),
    }
}

fn format_cursor((Reverse(created_at), id): &Place) -> String {
    format!("{:x}-{id}", created_at.as_millis())
}

fn parse_cursor(cursor: &str) -> Option<Place> {
    let (created_at, id) = cursor.split_once('-')?;
    let created_at = Timestamp::from_millis(u64::from_str_radix(created_at, 16).ok()?);
    let place = (Reverse(created_at), RecordId::parse(id)?);
    (format_cursor(&place) == cursor).then_some(place)
}
