//! Looking for damage: every page, the index against the records, every record. Reads only.
//!
//! The engine keeps no checksums of its pages. Records and leaves of the index prove themselves; what leads to them and
//! what counts them does not.

use rusqlite::Connection;

use crate::error::Cause;
use crate::meta::{Meta, Tally};
use crate::row::{self, Stored};
use crate::{index, leaf};

/// How many findings are told. Whoever has as many needs a good copy, not a longer list.
const FOUND_MAX: usize = 100;
/// How many records are read at a time, so that a long look does not hold back the log of the writer.
const STRETCH: usize = 256;
/// How many leaves are read at a time.
const LEAVES: u32 = 100;

/// What is wrong with pages and the index; nothing when all is well.
///
/// Each of its reads goes from beginning to end, and takes time in proportion to the size of the database.
pub(crate) fn pages(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut found = engine(connection)?;
    // The writer's own is one view already.
    let view = connection.is_autocommit().then(|| connection.unchecked_transaction()).transpose()?;
    let looked = compare(connection, &mut found);
    drop(view);
    damage_is_found(looked, &mut found)?;
    Ok(found)
}

/// What is wrong with pages, the index and records; nothing when all is well.
pub(crate) fn all(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut found = pages(connection)?;
    let looked = records(connection, &mut found);
    damage_is_found(looked, &mut found)?;
    found.truncate(FOUND_MAX);
    Ok(found)
}

/// The same where the index is about to be made anew.
pub(crate) fn all_but_index(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut found = engine(connection)?;
    let looked = records(connection, &mut found);
    damage_is_found(looked, &mut found)?;
    Ok(found)
}

/// What the engine finds in its pages.
fn engine(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut found = Vec::new();
    let mut look = || {
        let mut statement = connection.prepare(&format!("PRAGMA integrity_check({FOUND_MAX})"))?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            found.push(row.get::<_, String>(0)?);
        }
        Ok(())
    };
    let looked = look();
    found.retain(|text| text != "ok");
    damage_is_found(looked, &mut found)?;
    Ok(found)
}

/// Compares the records with the index, and those that it may lack with what is remembered of them, in one view.
fn compare(connection: &Connection, found: &mut Vec<String>) -> rusqlite::Result<()> {
    let meta = Meta::read_sealed(connection)?;
    let (mut placed, mut recorded) = (Tally::default(), Tally::default());
    let mut next = Some(i64::MIN);
    while let Some(from) = next {
        next = leaf::each(connection, from, LEAVES, |leaf| {
            let complete = leaf.entries().iter().filter(|entry| entry.row <= meta.indexed_row);
            complete.for_each(|entry| placed.add(entry));
        })?;
    }
    let mut waiting = Tally::default();
    index::each_record_after(connection, i64::MIN, |entry| {
        let tally = if entry.row <= meta.indexed_row { &mut recorded } else { &mut waiting };
        tally.add(&entry);
    })?;
    if placed != recorded {
        found.push("the index does not lead to all records, or not only to them".to_owned());
    }
    if waiting != meta.waiting {
        found.push("the newest records are not those that were written".to_owned());
    }
    Ok(())
}

fn records(connection: &Connection, found: &mut Vec<String>) -> rusqlite::Result<()> {
    let mut statement =
        connection.prepare("SELECT rowid FROM record WHERE rowid > ?1 ORDER BY rowid LIMIT ?2")?;
    let mut after = i64::MIN;
    while found.len() < FOUND_MAX {
        let rowids: Vec<i64> = statement
            .query_map((after, STRETCH as i64), |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        let Some(last) = rowids.last() else { break };
        after = *last;
        for rowid in rowids {
            if let Stored::Unreadable(damage) = row::at(connection, rowid)? {
                found.push(format!("record {}: {}", damage.id, damage.why));
            }
        }
    }
    Ok(())
}

/// A look that damage cut short has found damage.
fn damage_is_found(looked: rusqlite::Result<()>, found: &mut Vec<String>) -> rusqlite::Result<()> {
    match looked {
        Err(error) if Cause::of(&error) == Cause::Corrupt => {
            found.push(error.to_string());
            Ok(())
        }
        looked => looked,
    }
}
