//! The index in SQLite as a whole: which entries it should have, read from the records, and making it anew from them.

use rusqlite::{Connection, ffi};

use crate::leaf::{self, Hash, IndexEntry};
use crate::meta::{Meta, Tally};

const RECORDS_AFTER: &str = "SELECT hash, rowid FROM record WHERE rowid > ?1 ORDER BY rowid";

/// Visits the entries of all records after a row, in the order of rows; their tally.
pub(crate) fn each_record_after(
    connection: &Connection,
    row: i64,
    mut visit: impl FnMut(IndexEntry),
) -> rusqlite::Result<Tally> {
    let mut statement = connection.prepare_cached(RECORDS_AFTER)?;
    let mut rows = statement.query([row])?;
    let mut tally = Tally::default();
    while let Some(row) = rows.next()? {
        let hash = row.get_ref(0)?.as_blob().ok().and_then(|bytes| Hash::try_from(bytes).ok());
        let hash = hash.ok_or_else(|| damaged("a record has no hash"))?;
        let entry = IndexEntry::new(&hash, row.get(1)?);
        tally.add(&entry);
        visit(entry);
    }
    Ok(tally)
}

/// Makes the index of all records anew, and notes in `meta` that it is complete.
pub(crate) fn make_anew(connection: &Connection, meta: &mut Meta) -> rusqlite::Result<()> {
    leaf::make(connection)?;
    let mut entries = Vec::new();
    each_record_after(connection, i64::MIN, |entry| entries.push(entry))?;
    let last_row = entries.last().map_or(0, |entry| entry.row).max(meta.next_row - 1);
    entries.sort_unstable();
    leaf::add(connection, &entries)?;
    meta.indexed_row = last_row;
    meta.next_row = last_row + 1;
    meta.waiting = Tally::default();
    Ok(())
}

/// The error of SQLite for its own damaged pages.
pub(crate) fn damaged(why: &str) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_CORRUPT), Some(why.to_owned()))
}
