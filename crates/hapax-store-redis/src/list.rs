//! Listing and counting by a full scan: Redis has no order to page by.
//!
//! A page reads the heads of all records under the prefix and keeps the newest in memory, as many as the page holds. It is
//! meant for operators and takes time in proportion to the number of records; it delays a claim by at most one head.

use std::sync::Arc;

use futures_util::future::join_all;
use hapax_core::{Lookup, Newest, Page, Query, RecordId, Stats, StoreError, StoreErrorKind, Timestamp};

use crate::connection::{Call, CallBody, CallError, ServerConnection, SlotAccess};
use crate::error::{CallFailure, Effect};
use crate::layout::Stored;
use crate::routing::{self, Router};
use crate::store::get;

/// How many keys the server scans in one step, during which it serves no other client.
const SCAN_COUNT: usize = 256;

/// The first cursor of a scan, and the one that ends it.
const START: &str = "0";

/// The head of one record.
struct Found {
    id: RecordId,
    value: Vec<u8>,
    expiry: i64,
    now: Timestamp,
    bytes: u64,
}

/// One page of `query`.
pub(crate) async fn list(router: &Router, query: &Query) -> Result<Page, StoreError> {
    let mut newest = Newest::of(query).ok_or_else(|| CallFailure::Cursor.error("list", Effect::Read))?;
    let mut page = Page::default();
    let id_prefix = query.id_prefix.as_deref().unwrap_or_default();
    if newest.is_closed() || !is_id_prefix(id_prefix) {
        return Ok(page);
    }
    let mut scan = Scan::new(router, "list", id_prefix);
    while let Some(batch) = scan.next().await? {
        for found in batch {
            page.now = page.now.max(found.now);
            found.offer(&mut newest, query);
        }
    }
    let (ids, next) = newest.page();
    page.next = next;
    for id in ids {
        match get(router, "list", &id, router.deadline()).await? {
            Lookup::Found { record, .. } => page.records.push(*record),
            Lookup::Unreadable { .. } => page.unreadable.push(id),
            Lookup::Absent => {}
        }
    }
    Ok(page)
}

/// Counts all records. A record may be counted twice or be missed while a server resizes its table or slots move.
pub(crate) async fn stats(router: &Router) -> Result<Stats, StoreError> {
    let mut stats = Stats::default();
    let mut scan = Scan::new(router, "stats", "");
    while let Some(batch) = scan.next().await? {
        for found in batch {
            stats.bytes += found.bytes;
            if let Some(Ok(record)) = found.open().map(|stored| stored.outline(found.id, found.expiry)) {
                stats.count(record.state_at(found.now));
            }
        }
    }
    Ok(stats)
}

impl Found {
    fn open(&self) -> Option<Stored<'_>> {
        Stored::open(&self.id.to_string(), &self.value)
    }

    /// Offers the record if it matches the query. An unreadable one always does.
    fn offer(&self, newest: &mut Newest, query: &Query) {
        match self.open().and_then(|stored| stored.outline(self.id, self.expiry).ok()) {
            Some(record) if query.admits(&record, self.now) => {
                newest.offer(self.id, Some(record.created_at));
            }
            Some(_) => {}
            None => newest.offer(self.id, None),
        }
    }
}

/// A scan over all keys of the store, one server after the other.
struct Scan<'a> {
    router: &'a Router,
    op: &'static str,
    pattern: String,
    /// Servers still to be scanned; the last one first.
    servers: Vec<Arc<ServerConnection>>,
    /// The cursor on that server.
    cursor: String,
}

impl<'a> Scan<'a> {
    fn new(router: &'a Router, op: &'static str, id_prefix: &str) -> Self {
        let pattern = format!("{}{id_prefix}*", literal(&router.options.prefix));
        Self { router, op, pattern, servers: router.servers(), cursor: START.to_owned() }
    }

    async fn next(&mut self) -> Result<Option<Vec<Found>>, StoreError> {
        let Some(server) = self.servers.last() else { return Ok(None) };
        let mut scan = redis::cmd("SCAN");
        scan.arg(&self.cursor).arg("MATCH").arg(&self.pattern).arg("COUNT").arg(SCAN_COUNT);
        let (op, deadline, effect) = (self.op, self.router.deadline(), Effect::Read);
        // It names no key, so it is never redirected.
        let call = Call { op, deadline, effect, key: "", body: CallBody::Command(&scan) };
        let answer = server.answer(&call, SlotAccess::Owned).await.map_err(CallError::error)?;
        let (cursor, keys): (String, Vec<Vec<u8>>) = routing::read(op, effect, answer)?;
        self.cursor = cursor;
        if self.cursor == START {
            self.servers.pop();
        }
        let ids = keys.iter().filter_map(|key| self.id_of(key));
        let heads: Result<Vec<Option<Found>>, StoreError> =
            join_all(ids.map(|id| self.head(id))).await.into_iter().collect();
        Ok(Some(heads?.into_iter().flatten().collect()))
    }

    fn id_of(&self, key: &[u8]) -> Option<RecordId> {
        let name = std::str::from_utf8(key).ok()?;
        RecordId::parse(name.strip_prefix(&self.router.options.prefix)?)
    }

    async fn head(&self, id: RecordId) -> Result<Option<Found>, StoreError> {
        let call = Call {
            op: self.op,
            deadline: self.router.deadline(),
            effect: Effect::Read,
            key: &self.router.key(&id),
            body: CallBody::Script(|scripts| &scripts.head, &[]),
        };
        match self.router.call(call).await {
            Ok((value, expiry, now, bytes)) => {
                let value: Vec<u8> = value;
                let now = Timestamp::from_millis(now);
                let is_gone = bytes == 0 && value.is_empty();
                Ok((!is_gone).then_some(Found { id, value, expiry, now, bytes }))
            }
            // The key holds another type than a string.
            Err(error) if error.kind() == StoreErrorKind::Incompatible => {
                Ok(Some(Found { id, value: Vec::new(), expiry: -1, now: Timestamp::default(), bytes: 0 }))
            }
            Err(error) => Err(error),
        }
    }
}

fn is_id_prefix(prefix: &str) -> bool {
    prefix.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// A glob pattern that matches exactly this text.
fn literal(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '*' | '?' | '[' | ']' | '^' | '\\') {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}

#[cfg(test)]
mod tests;
