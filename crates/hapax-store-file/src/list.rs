//! Lists records, newest first: which rows to read, in which order, and where the next page starts.

use std::cmp::Reverse;

use hapax_core::{Page, Query, RecordId, State, Timestamp};
use rusqlite::Connection;

use crate::error::RefuseReason;
use crate::leaf::{self, Hash, IndexLookup};
use crate::reader::ReadError;
use crate::row::{self, StoredRow, state_number};

/// How many rows are read at a time, each time in a read of its own, so that a search through millions of records does
/// not keep SQLite's log from being checkpointed.
const ROWS_AT_A_TIME: u32 = 256;

/// How many leaves of the index are read at a time.
const LEAVES_AT_A_TIME: u32 = 100;

/// How many records a page holds at most.
const PAGE_MAX: usize = 10_000;

/// How a search goes through the records.
enum Scan {
    /// By the index, all ids between these two.
    Prefix { first: Hash, last: Hash },
    /// By the index, these states, of which there are few records.
    States(Vec<i64>),
    /// Through all rows, newest first.
    All,
    /// Nothing can match.
    Nothing,
}

/// One page of `query`.
pub(crate) fn list(connection: &Connection, query: &Query, now: Timestamp) -> Result<Page, ReadError> {
    let mut page = Page::new(now);
    let mut before = match &query.cursor {
        Some(cursor) => parse_cursor(cursor).ok_or(ReadError::Refused(RefuseReason::Cursor))?,
        None => i64::MAX,
    };
    let limit = query.limit.min(PAGE_MAX);
    if limit == 0 {
        return Ok(page);
    }
    let scan = Scan::of(query);
    loop {
        let rowids = scan.next_rows(connection, before)?;
        for rowid in &rowids {
            let (record, unreadable) = match row::at(connection, *rowid)? {
                StoredRow::Absent => continue,
                StoredRow::Found(row) if query.admits(&row.record, now) => (Some(row.record), None),
                StoredRow::Found(_) => continue,
                StoredRow::Unreadable(damage) => (None, Some(damage.id)),
            };
            if page.records.len() + page.unreadable.len() == limit {
                page.next = Some(format_cursor(before));
                return Ok(page);
            }
            page.records.extend(record);
            page.unreadable.extend(unreadable);
            before = *rowid;
        }
        match rowids.last() {
            Some(last) if rowids.len() == ROWS_AT_A_TIME as usize => before = *last,
            _ => return Ok(page),
        }
    }
}

impl Scan {
    fn of(query: &Query) -> Self {
        if let Some(prefix) = query.id_prefix.as_deref().filter(|prefix| !prefix.is_empty()) {
            return match (bound(prefix, b'0'), bound(prefix, b'f')) {
                (Some(first), Some(last)) => Self::Prefix { first, last },
                _ => Self::Nothing,
            };
        }
        // Most records are completed: going through all of them in order is cheaper than sorting an index.
        if query.states.is_empty() || query.states.contains(&State::Completed) {
            return Self::All;
        }
        let mut numbers: Vec<i64> = query.states.iter().copied().map(state_number).collect();
        if query.states.contains(&State::Uncertain) {
            // A lapsed claim is uncertain before that is written.
            numbers.push(state_number(State::InProgress));
        }
        Self::States(numbers)
    }

    /// The next rows to read, from the newest, all older than row `before`.
    fn next_rows(&self, connection: &Connection, before: i64) -> rusqlite::Result<Vec<i64>> {
        // The unary plus keeps SQLite from walking the rows in order instead of using the index.
        match self {
            Self::Prefix { first, last } => rows_between(connection, first, last, before),
            Self::States(numbers) => {
                let mut padded = [0; 5];
                for (slot, number) in padded.iter_mut().zip(numbers) {
                    *slot = *number;
                }
                let [a, b, c, d, e] = padded;
                connection
                    .prepare_cached(
                        "SELECT rowid FROM record INDEXED BY record_by_state \
                         WHERE state IN (?1, ?2, ?3, ?4, ?5) AND +rowid < ?6 ORDER BY +rowid DESC LIMIT ?7",
                    )?
                    .query_map((a, b, c, d, e, before, ROWS_AT_A_TIME), |row| row.get(0))?
                    .collect()
            }
            Self::All => connection
                .prepare_cached("SELECT rowid FROM record WHERE rowid < ?1 ORDER BY rowid DESC LIMIT ?2")?
                .query_map((before, ROWS_AT_A_TIME), |row| row.get(0))?
                .collect(),
            Self::Nothing => Ok(Vec::new()),
        }
    }
}

/// The newest rows before `before` whose hash lies between two others.
fn rows_between(
    connection: &Connection,
    first: &Hash,
    last: &Hash,
    before: i64,
) -> rusqlite::Result<Vec<i64>> {
    // First the records that may be missing from the index: one that is flushed meanwhile is found twice, not missed.
    let mut rows: Vec<i64> = connection
        .prepare_cached(
            "SELECT rowid FROM record WHERE rowid > (SELECT indexed_row FROM meta) AND rowid < ?3 \
             AND hash BETWEEN ?1 AND ?2",
        )?
        .query_map((first, last, before), |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    if first == last {
        rows.extend(IndexLookup::new(connection).rows_of(first)?);
    } else {
        // The index is not in the order of ids.
        let mut next = Some(i64::MIN);
        while let Some(from) = next {
            next = leaf::each(connection, from, LEAVES_AT_A_TIME, |leaf| {
                let between = leaf.entries().iter().filter(|entry| (first..=last).contains(&&entry.hash()));
                rows.extend(between.map(|entry| entry.row));
            })?;
        }
    }
    rows.retain(|row| *row < before);
    rows.sort_unstable_by_key(|row| Reverse(*row));
    rows.dedup();
    rows.truncate(ROWS_AT_A_TIME as usize);
    Ok(rows)
}

/// The first or last half-id that starts with `prefix`; `None` when no id does.
fn bound(prefix: &str, filler: u8) -> Option<Hash> {
    let mut digits = [filler; 64];
    if prefix.len() > digits.len() || prefix.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return None;
    }
    digits[..prefix.len()].copy_from_slice(prefix.as_bytes());
    let id = RecordId::parse(std::str::from_utf8(&digits).ok()?)?;
    Some(row::hash_of(&id))
}

fn format_cursor(rowid: i64) -> String {
    format!("{rowid:x}")
}

fn parse_cursor(cursor: &str) -> Option<i64> {
    i64::from_str_radix(cursor, 16).ok().filter(|rowid| format_cursor(*rowid) == cursor && *rowid > 0)
}
