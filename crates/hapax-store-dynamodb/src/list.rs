//! Listing and counting by a full scan: the table has no order to page by.
//!
//! A page reads the heads of all records and keeps the newest in memory, as many as the page holds. It is meant for
//! operators, takes time in proportion to the number of records, and is billed as a read of the table. A secondary index
//! would be billed with every claim and could not be read consistently.

use hapax_core::{Lookup, Newest, Page, Query, RecordId, Stats, StoreError, Timestamp, codec};
use serde_json::Value;

use crate::client::Client;
use crate::error::{CallFailure, Effect};
use crate::item;
use crate::scan::{Scan, name};
use crate::store::get;

/// DynamoDB's overhead per item besides the attributes' values: their names and a hundred bytes of its own.
const ITEM_BYTES: u64 = 220;

/// One page of `query`.
pub(crate) async fn list(client: &Client, query: &Query) -> Result<Page, StoreError> {
    let mut newest = Newest::of(query).ok_or_else(|| CallFailure::Cursor.error("list", Effect::Read))?;
    let mut page = Page::new(client.time.now());
    if newest.is_closed() {
        return Ok(page);
    }
    let mut scan = Scan::records(client, "list");
    while let Some(items) = scan.next().await? {
        for item in items {
            offer(&mut newest, &item, query, client.time.now());
        }
    }
    let (ids, next) = newest.page();
    page.next = next;
    for id in ids {
        match get(client, "list", &id).await? {
            Lookup::Found { record, .. } => page.records.push(*record),
            Lookup::Unreadable { .. } => page.unreadable.push(id),
            Lookup::Absent => {}
        }
    }
    page.now = client.time.now();
    Ok(page)
}

/// Counts all records.
pub(crate) async fn stats(client: &Client) -> Result<Stats, StoreError> {
    let mut stats = Stats::default();
    let mut scan = Scan::records(client, "stats");
    while let Some(items) = scan.next().await? {
        for item in items {
            let head = item::bytes(&item, "head").unwrap_or_default();
            let outcome = item::unsigned(&item, "outcome_bytes").unwrap_or_default();
            stats.bytes += ITEM_BYTES + head.len() as u64 + outcome;
            let record = RecordId::parse(name(&item)).and_then(|id| codec::decode_head(&id, &head).ok());
            if let Some(record) = record {
                stats.count(record.state_at(client.time.now()));
            }
        }
    }
    Ok(stats)
}

/// Offers a record that matches the query. An unreadable one matches, unless its id does not.
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
