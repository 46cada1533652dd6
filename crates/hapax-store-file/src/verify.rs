//! Looking for damage: every page, every index against its table, every record. Reads only.
//!
//! The engine keeps no checksums of its pages. A record proves itself; the way to it does not, and a bit that
//! flips in an index hides a record that is whole.

use rusqlite::Connection;

use crate::error::Cause;
use crate::row::{self, Stored};

/// How many findings are told. Whoever has as many needs a good copy, not a longer list.
const FOUND_MAX: usize = 100;
/// How many records are read at a time, so that a long look does not hold back the log of the writer.
const STRETCH: usize = 256;

/// Counts records that nobody would find, and ways that lead nowhere.
const PLACES: [(&str, &str); 2] = [
    (
        "records are missing in the index `place`",
        "SELECT count(*) FROM record r WHERE r.rowid <= (SELECT indexed_row FROM meta) \
         AND NOT EXISTS (SELECT 1 FROM place p WHERE p.hash = r.hash AND p.row = r.rowid)",
    ),
    (
        "entries of the index `place` lead to no record of theirs",
        "SELECT count(*) FROM place p \
         WHERE NOT EXISTS (SELECT 1 FROM record r WHERE r.rowid = p.row AND r.hash = p.hash)",
    ),
];

/// What is wrong with pages and indexes; nothing when all is well.
///
/// Each of its reads goes from beginning to end, and takes time in proportion to the size of the database.
pub(crate) fn pages(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut found = Vec::new();
    let mut look = || {
        let mut statement = connection.prepare(&format!("PRAGMA integrity_check({FOUND_MAX})"))?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            found.push(row.get::<_, String>(0)?);
        }
        for (what, count) in PLACES {
            let count: i64 = connection.query_row(count, [], |row| row.get(0))?;
            if count > 0 {
                found.push(format!("{count} {what}"));
            }
        }
        Ok(())
    };
    let looked = look();
    found.retain(|text| text != "ok");
    damage_is_found(looked, &mut found)?;
    Ok(found)
}

/// What is wrong with pages, indexes and records; nothing when all is well.
pub(crate) fn all(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut found = pages(connection)?;
    let looked = records(connection, &mut found);
    damage_is_found(looked, &mut found)?;
    found.truncate(FOUND_MAX);
    Ok(found)
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
