//! Listing and counting, for people: newest first, by an index, a stretch at a time.

use hapax_core::{Page, Query, RecordId, State, Stats, StoreError};
use tokio::time::timeout_at;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use crate::claim::{id_of, look};
use crate::error::{Effect, Refusal};
use crate::link::Link;
use crate::row::{state, state_number};

/// How many rows are looked up at a time. Each stretch is a statement of its own, so that none runs for long.
const STRETCH: usize = 256;

/// How many records a page holds at most, whatever it is asked for.
const PAGE_MAX: usize = 10_000;

/// Where a record stands in a listing: by the moment of its first claim, and those of one moment by id.
type Place = (i64, RecordId);

/// Below this there is everything.
const TOP: Place = (i64::MAX, RecordId::from_bytes([0xff; 32]));

/// One page of `query`.
pub(crate) async fn list(link: &Link, query: &Query) -> Result<Page, StoreError> {
    let mut before = match &query.cursor {
        Some(cursor) => parse_cursor(cursor).ok_or_else(|| Refusal::Cursor.error("list", Effect::Read))?,
        None => TOP,
    };
    let limit = query.limit.min(PAGE_MAX);
    let mut page = Page::default();
    let prefix = query.id_prefix.as_deref().unwrap_or_default();
    let (Some(first), Some(last)) = (bound(prefix, b'0'), bound(prefix, b'f')) else { return Ok(page) };
    if limit == 0 {
        return Ok(page);
    }
    loop {
        let places = stretch(link, query, before, (first, last)).await?;
        let ids: Vec<RecordId> = places.iter().map(|(_, id)| *id).collect();
        let deadline = link.long_deadline();
        let lent = link.lend("list", deadline).await?;
        let found = timeout_at(deadline, look(lent.client(), &link.sql, &ids)).await;
        let mut found = lent.end("list", Effect::Read, found)?;
        for place in &places {
            // One that is gone meanwhile is not shown.
            let Some(found) = found.remove(&place.1) else { continue };
            page.now = page.now.max(found.now);
            if found.record.as_ref().is_ok_and(|record| !query.admits(record, found.now)) {
                continue;
            }
            if page.records.len() + page.unreadable.len() == limit {
                page.next = Some(format_cursor(&before));
                return Ok(page);
            }
            match found.record {
                Ok(record) => page.records.push(record),
                Err(_) => page.unreadable.push(place.1),
            }
            before = *place;
        }
        match places.last() {
            Some(last) if places.len() == STRETCH => before = *last,
            _ => return Ok(page),
        }
    }
}

/// The next places that may hold what is asked for.
async fn stretch(
    link: &Link,
    query: &Query,
    before: Place,
    (first, last): (RecordId, RecordId),
) -> Result<Vec<Place>, StoreError> {
    let asked = if query.states.is_empty() { State::ALL.to_vec() } else { query.states.clone() };
    let is_open = |state: &State| matches!(state, State::InProgress | State::Uncertain);
    let only_open = asked.iter().all(is_open);
    let states: Vec<i16> = asked.into_iter().map(state_number).collect();
    let namespace = query.namespace.as_deref().map(str::as_bytes);
    let operation = query.operation_prefix.as_deref().unwrap_or_default().as_bytes();
    let limit = i64::try_from(STRETCH).unwrap_or(i64::MAX);
    let id = |id: &RecordId| id.as_bytes().to_vec();
    let (below, first, last) = (id(&before.1), id(&first), id(&last));
    let statement = if only_open { &link.sql.page_open } else { &link.sql.page };
    let parameters: [(&(dyn ToSql + Sync), Type); 8] = [
        (&before.0, Type::INT8),
        (&below, Type::BYTEA),
        (&first, Type::BYTEA),
        (&last, Type::BYTEA),
        (&states, Type::INT2_ARRAY),
        (&namespace, Type::BYTEA),
        (&operation, Type::BYTEA),
        (&limit, Type::INT8),
    ];
    let deadline = link.long_deadline();
    let lent = link.lend("list", deadline).await?;
    let reading = async {
        let rows = lent.client().query_typed(statement, &parameters).await?;
        let place = |row: &Row| Ok(id_of(row)?.map(|id| (row.try_get(1), id)));
        let places: Result<Vec<_>, tokio_postgres::Error> = rows.iter().map(place).collect();
        places?.into_iter().flatten().map(|(created_at, id)| Ok((created_at?, id))).collect()
    };
    let places = timeout_at(deadline, reading).await;
    lent.end("list", Effect::Read, places)
}

/// Counts all records.
pub(crate) async fn stats(link: &Link) -> Result<Stats, StoreError> {
    let deadline = link.long_deadline();
    let lent = link.lend("stats", deadline).await?;
    let counting = async {
        let mut stats = Stats::default();
        for row in lent.client().query_typed(&link.sql.stats, &[]).await? {
            let count = |number: i64| u64::try_from(number).unwrap_or_default();
            stats.bytes = count(row.try_get(2)?);
            let records = count(row.try_get(1)?);
            match state(row.try_get(0)?) {
                Some(State::InProgress) => stats.in_progress += records,
                Some(State::Completed) => stats.completed += records,
                Some(State::Failed) => stats.failed += records,
                Some(State::Uncertain) => stats.uncertain += records,
                Some(State::Released) => stats.released += records,
                None => {}
            }
        }
        Ok(stats)
    };
    let stats = timeout_at(deadline, counting).await;
    lent.end("stats", Effect::Read, stats)
}

/// The first or last id that starts with `prefix`; `None` when none does.
fn bound(prefix: &str, filler: u8) -> Option<RecordId> {
    let mut digits = [filler; 64];
    if prefix.len() > digits.len() || prefix.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return None;
    }
    digits[..prefix.len()].copy_from_slice(prefix.as_bytes());
    RecordId::parse(std::str::from_utf8(&digits).ok()?)
}

fn format_cursor((created_at, id): &Place) -> String {
    format!("{created_at:x}-{id}")
}

fn parse_cursor(cursor: &str) -> Option<Place> {
    let (created_at, id) = cursor.split_once('-')?;
    let place = (i64::from_str_radix(created_at, 16).ok()?, RecordId::parse(id)?);
    (format_cursor(&place) == cursor).then_some(place)
}

#[cfg(test)]
mod tests;
