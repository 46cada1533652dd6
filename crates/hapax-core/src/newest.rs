//! [`Newest`]: one page of a store that has no order to page by and is gone through as a whole.
//!
//! It owns the order of a listing and what a cursor looks like. Which records are asked for is [`Query`]'s business, and
//! how they are read is the store's.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::key::RecordId;
use crate::record::Timestamp;
use crate::store::Query;

/// How many records a page holds at most, whatever it is asked for.
const PAGE_MAX: usize = 10_000;

/// Where a record stands in a listing: the newest first, and those of one moment by id.
type Place = (Reverse<Timestamp>, RecordId);

/// Collects the newest records that come after a cursor, as many as a page holds, in whichever order they are offered.
#[derive(Clone, Debug)]
pub struct Newest {
    after: Option<Place>,
    limit: usize,
    /// One more than the page holds, to know whether there is a next one.
    places: BTreeSet<Place>,
}

impl Newest {
    /// For the page that `query` asks for. None when its cursor is none of ours.
    pub fn of(query: &Query) -> Option<Self> {
        let after = match &query.cursor {
            Some(cursor) => Some(parse(cursor)?),
            None => None,
        };
        Some(Self { after, limit: query.limit.min(PAGE_MAX), places: BTreeSet::new() })
    }

    /// Whether the page holds nothing, so that nothing need be offered.
    pub const fn is_closed(&self) -> bool {
        self.limit == 0
    }

    /// Offers a record. One that cannot be read has no age, and comes last.
    pub fn offer(&mut self, id: RecordId, created_at: Option<Timestamp>) {
        let place = (Reverse(created_at.unwrap_or_default()), id);
        if self.after.is_none_or(|after| place > after) {
            self.places.insert(place);
        }
        if self.places.len() > self.limit + 1 {
            self.places.pop_last();
        }
    }

    /// The records of the page in their order, and the cursor of the next page if there is one.
    pub fn page(self) -> (Vec<RecordId>, Option<String>) {
        let has_more = self.places.len() > self.limit;
        let shown: Vec<Place> = self.places.into_iter().take(self.limit).collect();
        let next = shown.last().filter(|_| has_more).map(format);
        (shown.into_iter().map(|(_, id)| id).collect(), next)
    }
}

fn format((Reverse(created_at), id): &Place) -> String {
    format!("{:x}-{id}", created_at.as_millis())
}

fn parse(cursor: &str) -> Option<Place> {
    let (created_at, id) = cursor.split_once('-')?;
    let created_at = Timestamp::from_millis(u64::from_str_radix(created_at, 16).ok()?);
    let place = (Reverse(created_at), RecordId::parse(id)?);
    (format(&place) == cursor).then_some(place)
}

#[cfg(test)]
mod tests;
