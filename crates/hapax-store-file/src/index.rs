//! The index in SQLite as a whole: the entries that it should have, read from the records, and rebuilding it from them.

use rusqlite::{Connection, ffi};

use crate::leaf::{self, Hash, IndexEntry};
use crate::meta::{Meta, SetDigest};

const RECORDS_AFTER: &str = "SELECT hash, rowid FROM record WHERE rowid > ?1 ORDER BY rowid";

/// Visits the entries of all records after a row, in the order of rows; returns their digest.
pub(crate) fn each_record_after(
    connection: &Connection,
    row: i64,
    mut visit: impl FnMut(IndexEntry),
) -> rusqlite::Result<SetDigest> {
    let mut statement = connection.prepare_cached(RECORDS_AFTER)?;
    let mut rows = statement.query([row])?;
    let mut digest = SetDigest::default();
    while let Some(row) = rows.next()? {
        let hash = row.get_ref(0)?.as_blob().ok().and_then(|bytes| Hash::try_from(bytes).ok());
        let hash = hash.ok_or_else(|| damaged("a record has no hash"))?;
        let entry = IndexEntry::new(&hash, row.get(1)?);
        digest.add(&entry);
        visit(entry);
    }
    Ok(digest)
}

/// Rebuilds the index from all records, and sets in `meta` that it is complete.
pub(crate) fn rebuild(connection: &Connection, meta: &mut Meta) -> rusqlite::Result<()> {
    leaf::create(connection)?;
    let mut entries = Vec::new();
    each_record_after(connection, i64::MIN, |entry| entries.push(entry))?;
    let last_row = entries.last().map_or(0, |entry| entry.row).max(meta.next_row - 1);
    entries.sort_unstable();
    leaf::add(connection, &entries)?;
    meta.indexed_row = last_row;
    meta.next_row = last_row + 1;
    meta.waiting = SetDigest::default();
    Ok(())
}

/// The error of SQLite for its own damaged pages.
pub(crate) fn damaged(why: &str) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_CORRUPT), Some(why.to_owned()))
}
