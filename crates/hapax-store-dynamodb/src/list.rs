//! Listing and counting, by going through the whole table: it has no order to page by.
//!
//! A page reads the heads of all records and keeps the newest ones in memory, as many as the page holds. It is for people,
//! takes time in proportion to the number of records, and is charged for as reading the table. A second index would be
//! paid for with every claim and could not be read consistently.

use hapax_core::{Lookup, Newest, Page, Query, RecordId, Stats, StoreError, Timestamp, codec};
use serde_json::Value;

use crate::error::{Effect, Refusal};
use crate::item;
use crate::link::Link;
use crate::scan::{Scan, name};
use crate::store::get;

/// What DynamoDB counts for an item beside its attributes' values: their names and a hundred bytes of its own.
const ITEM_BYTES: u64 = 220;

/// One page of `query`.
pub(crate) async fn list(link: &Link, query: &Query) -> Result<Page, StoreError> {
    let mut newest = Newest::of(query).ok_or_else(|| Refusal::Cursor.error("list", Effect::Read))?;
    let mut page = Page::new(link.time.now());
    if newest.is_closed() {
        return Ok(page);
    }
    let mut scan = Scan::records(link, "list");
    while let Some(items) = scan.next().await? {
        for item in items {
            offer(&mut newest, &item, query, link.time.now());
        }
    }
    let (ids, next) = newest.page();
    page.next = next;
    for id in ids {
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

/// Offers a record that is asked for. What cannot be read is, unless its id says otherwise.
fn offer(newest: &mut Newest, item: &Value, query: &Query, now: Timestamp) {
    let Some(id) = RecordId::parse(name(item)) else { return };
    if query.id_prefix.as_deref().is_some_and(|prefix| !name(item).starts_with(prefix)) {
        return;
    }
    match item::bytes(item, "head").and_then(|head| codec::decode_head(&id, &head).ok()) {
        Some(record) if query.admits(&record, now) => newest.offer(id, Some(record.created_at)),
        Some(_) => {}
        None => newest.offer(id, None),
    }
}
