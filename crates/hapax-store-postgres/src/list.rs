//! Listing and counting for operators: newest first, by an index, in chunks.

use hapax_core::{Page, Query, RecordId, State, Stats, StoreError};
use tokio::time::timeout_at;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use crate::claim::{fetch, id_of};
use crate::error::{CallFailure, Effect};
use crate::pool::ConnectionPool;
use crate::row::{state, state_number};

/// How many rows are read at a time. Each chunk is a separate statement, so that none runs for long.
const CHUNK: usize = 256;

/// The page size limit.
const PAGE_MAX: usize = 10_000;

/// A position in a listing: by the time of the first claim, then by id.
type CursorPosition = (i64, RecordId);

/// The position above all records.
const START: CursorPosition = (i64::MAX, RecordId::from_bytes([0xff; 32]));

/// One page of `query`.
pub(crate) async fn list(pool: &ConnectionPool, query: &Query) -> Result<Page, StoreError> {
    let mut before = match &query.cursor {
        Some(cursor) => {
            parse_cursor(cursor).ok_or_else(|| CallFailure::Cursor.error("list", Effect::Read))?
        }
        None => START,
    };
    let limit = query.limit.min(PAGE_MAX);
    let mut page = Page::default();
    let prefix = query.id_prefix.as_deref().unwrap_or_default();
    let (Some(first), Some(last)) = (bound(prefix, b'0'), bound(prefix, b'f')) else { return Ok(page) };
    if limit == 0 {
        return Ok(page);
    }
    loop {
        let positions = chunk(pool, query, before, (first, last)).await?;
        let ids: Vec<RecordId> = positions.iter().map(|(_, id)| *id).collect();
        let deadline = pool.long_deadline();
        let connection = pool.acquire("list", deadline).await?;
        let found = timeout_at(deadline, fetch(connection.client(), &pool.sql, &ids)).await;
        let mut found = connection.end("list", Effect::Read, found)?;
        for position in &positions {
            // Removed concurrently.
            let Some(found) = found.remove(&position.1) else { continue };
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
                Err(_) => page.unreadable.push(position.1),
            }
            before = *position;
        }
        match positions.last() {
            Some(last) if positions.len() == CHUNK => before = *last,
            _ => return Ok(page),
        }
    }
}

/// The next positions that may match the query.
async fn chunk(
    pool: &ConnectionPool,
    query: &Query,
    before: CursorPosition,
    (first, last): (RecordId, RecordId),
) -> Result<Vec<CursorPosition>, StoreError> {
    let states = if query.states.is_empty() { State::ALL.to_vec() } else { query.states.clone() };
    let is_open = |state: &State| matches!(state, State::InProgress | State::Uncertain);
    let only_open = states.iter().all(is_open);
    let states: Vec<i16> = states.into_iter().map(state_number).collect();
    let namespace = query.namespace.as_deref().map(str::as_bytes);
    let operation = query.operation_prefix.as_deref().unwrap_or_default().as_bytes();
    let limit = i64::try_from(CHUNK).unwrap_or(i64::MAX);
    let id = |id: &RecordId| id.as_bytes().to_vec();
    let (below, first, last) = (id(&before.1), id(&first), id(&last));
    let statement = if only_open { &pool.sql.page_open } else { &pool.sql.page };
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
    let deadline = pool.long_deadline();
    let connection = pool.acquire("list", deadline).await?;
    let reading = async {
        let rows = connection.client().query_typed(statement, &parameters).await?;
        let position = |row: &Row| Ok(id_of(row)?.map(|id| (row.try_get(1), id)));
        let positions: Result<Vec<_>, tokio_postgres::Error> = rows.iter().map(position).collect();
        positions?.into_iter().flatten().map(|(created_at, id)| Ok((created_at?, id))).collect()
    };
    let positions = timeout_at(deadline, reading).await;
    connection.end("list", Effect::Read, positions)
}

/// Counts all records.
pub(crate) async fn stats(pool: &ConnectionPool) -> Result<Stats, StoreError> {
    let deadline = pool.long_deadline();
    let connection = pool.acquire("stats", deadline).await?;
    let counting = async {
        let mut stats = Stats::default();
        for row in connection.client().query_typed(&pool.sql.stats, &[]).await? {
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
    connection.end("stats", Effect::Read, stats)
}

/// The first or last id that starts with `prefix`; `None` if no id can.
fn bound(prefix: &str, filler: u8) -> Option<RecordId> {
    let mut digits = [filler; 64];
    if prefix.len() > digits.len() || prefix.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return None;
    }
    digits[..prefix.len()].copy_from_slice(prefix.as_bytes());
    RecordId::parse(std::str::from_utf8(&digits).ok()?)
}

fn format_cursor((created_at, id): &CursorPosition) -> String {
    format!("{created_at:x}-{id}")
}

fn parse_cursor(cursor: &str) -> Option<CursorPosition> {
    let (created_at, id) = cursor.split_once('-')?;
    let position = (i64::from_str_radix(created_at, 16).ok()?, RecordId::parse(id)?);
    (format_cursor(&position) == cursor).then_some(position)
}

#[cfg(test)]
mod tests;
