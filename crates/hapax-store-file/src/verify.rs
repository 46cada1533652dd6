//! Checks for damage: pages, the index against the records, and records. Reads only.
//!
//! SQLite keeps no checksums of its pages. Records and leaves of the index have checksums; SQLite's own inner pages and indexes
//! do not.

use rusqlite::Connection;

use crate::error::Cause;
use crate::meta::{Meta, SetDigest};
use crate::row::{self, StoredRow};
use crate::{index, leaf};

/// How many findings are reported. A store with more needs a good copy, not a longer list.
const FOUND_MAX: usize = 100;
/// How many records are read at a time, so that a long check does not keep SQLite's log from being checkpointed.
const ROWS_AT_A_TIME: usize = 256;
/// How many leaves are read at a time.
const LEAVES_AT_A_TIME: u32 = 100;

/// The damage in pages and the index.
///
/// Reads the whole database sequentially.
pub(crate) fn pages(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut found = sqlite_pages(connection)?;
    // The writer's connection has one view already.
    let view = connection.is_autocommit().then(|| connection.unchecked_transaction()).transpose()?;
    let result = compare(connection, &mut found);
    drop(view);
    record_damage(result, &mut found)?;
    Ok(found)
}

/// The damage in pages, the index and records.
pub(crate) fn all(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut found = pages(connection)?;
    let result = records(connection, &mut found);
    record_damage(result, &mut found)?;
    found.truncate(FOUND_MAX);
    Ok(found)
}

/// Like [`all`], without the index, which is about to be rebuilt.
pub(crate) fn all_but_index(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut found = sqlite_pages(connection)?;
    let result = records(connection, &mut found);
    record_damage(result, &mut found)?;
    Ok(found)
}

/// The damage that SQLite finds in its pages.
fn sqlite_pages(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut found = Vec::new();
    let mut check = || {
        let mut statement = connection.prepare(&format!("PRAGMA integrity_check({FOUND_MAX})"))?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            found.push(row.get::<_, String>(0)?);
        }
        Ok(())
    };
    let result = check();
    found.retain(|text| text != "ok");
    record_damage(result, &mut found)?;
    Ok(found)
}

/// Compares the records with the index, and those beyond it with their stored digest, in one view.
fn compare(connection: &Connection, found: &mut Vec<String>) -> rusqlite::Result<()> {
    let meta = Meta::read_sealed(connection)?;
    let (mut indexed, mut recorded) = (SetDigest::default(), SetDigest::default());
    let mut next = Some(i64::MIN);
    while let Some(from) = next {
        next = leaf::each(connection, from, LEAVES_AT_A_TIME, |leaf| {
            let complete = leaf.entries().iter().filter(|entry| entry.row <= meta.indexed_row);
            complete.for_each(|entry| indexed.add(entry));
        })?;
    }
    let mut waiting = SetDigest::default();
    index::each_record_after(connection, i64::MIN, |entry| {
        let digest = if entry.row <= meta.indexed_row { &mut recorded } else { &mut waiting };
        digest.add(&entry);
    })?;
    if indexed != recorded {
        found.push("the index does not match the records".to_owned());
    }
    if waiting != meta.waiting {
        found.push("the newest records do not match their digest".to_owned());
    }
    Ok(())
}

fn records(connection: &Connection, found: &mut Vec<String>) -> rusqlite::Result<()> {
    let mut statement =
        connection.prepare("SELECT rowid FROM record WHERE rowid > ?1 ORDER BY rowid LIMIT ?2")?;
    let mut after = i64::MIN;
    while found.len() < FOUND_MAX {
        let rowids: Vec<i64> = statement
            .query_map((after, ROWS_AT_A_TIME as i64), |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        let Some(last) = rowids.last() else { break };
        after = *last;
        for rowid in rowids {
            if let StoredRow::Unreadable(damage) = row::at(connection, rowid)? {
                found.push(format!("record {}: {}", damage.id, damage.why));
            }
        }
    }
    Ok(())
}

/// A check that fails because of damage has found it.
fn record_damage(result: rusqlite::Result<()>, found: &mut Vec<String>) -> rusqlite::Result<()> {
    match result {
        Err(error) if Cause::of(&error) == Cause::Corrupt => {
            found.push(error.to_string());
            Ok(())
        }
        result => result,
    }
}
