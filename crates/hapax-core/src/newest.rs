//! [`Newest`]: selects one page of a listing from a full scan, for stores without a sorted index.
//!
//! It owns the order of a listing and the format of its cursor. [`Query`] filters the records, and the store reads them.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::key::RecordId;
use crate::record::Timestamp;
use crate::store::Query;

/// Upper bound of [`Query::limit`].
const PAGE_MAX: usize = 10_000;

/// A record's position in a listing: newest first, ties by id.
type CursorPosition = (Reverse<Timestamp>, RecordId);

/// Collects the newest records after a cursor, up to the page limit. Records may be offered in any order.
#[derive(Clone, Debug)]
pub struct Newest {
    after: Option<CursorPosition>,
    limit: usize,
    /// Up to `limit + 1`: the extra one shows that there is a next page.
    positions: BTreeSet<CursorPosition>,
}

impl Newest {
    /// Starts the page of `query`. None when its cursor is malformed.
    pub fn of(query: &Query) -> Option<Self> {
        let after = match &query.cursor {
            Some(cursor) => Some(parse(cursor)?),
            None => None,
        };
        Some(Self { after, limit: query.limit.min(PAGE_MAX), positions: BTreeSet::new() })
    }

    /// Whether the limit is zero, so that the scan can be skipped.
    pub const fn is_closed(&self) -> bool {
        self.limit == 0
    }

    /// Offers a record. An unreadable record has no creation time and sorts last.
    pub fn offer(&mut self, id: RecordId, created_at: Option<Timestamp>) {
        let position = (Reverse(created_at.unwrap_or_default()), id);
        if self.after.is_none_or(|after| position > after) {
            self.positions.insert(position);
        }
        if self.positions.len() > self.limit + 1 {
            self.positions.pop_last();
        }
    }

    /// The records of the page in order, and the cursor of the next page if there is one.
    pub fn page(self) -> (Vec<RecordId>, Option<String>) {
        let has_more = self.positions.len() > self.limit;
        let shown: Vec<CursorPosition> = self.positions.into_iter().take(self.limit).collect();
        let next = shown.last().filter(|_| has_more).map(format);
        (shown.into_iter().map(|(_, id)| id).collect(), next)
    }
}

fn format((Reverse(created_at), id): &CursorPosition) -> String {
    format!("{:x}-{id}", created_at.as_millis())
}

fn parse(cursor: &str) -> Option<CursorPosition> {
    let (created_at, id) = cursor.split_once('-')?;
    let created_at = Timestamp::from_millis(u64::from_str_radix(created_at, 16).ok()?);
    let position = (Reverse(created_at), RecordId::parse(id)?);
    (format(&position) == cursor).then_some(position)
}

#[cfg(test)]
mod tests;
