//! [`Index`]: the way from an id to its row, of which the newest entries are in memory only.
//!
//! Ids are as good as random, so an entry that is written with its record dirties a page of its own. Entries wait
//! here until there are many, and are then written in the order of the index: neighbours share a page. What waits
//! is in the rows themselves, above the row up to which the index is known to be complete; whoever opens the store
//! after a crash, or looks at it from another process, finds it there. What those rows are is noted with every commit,
//! so that a start after a crash notices when one is missing.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::RwLock;
use rusqlite::{Connection, Transaction, ffi};

use crate::leaf::{self, Entry, Hash};
use crate::meta::{Meta, Tally};

/// How many entries wait at least before any is written, when the store is busy. It bounds what has to be written
/// when the store is closed, or opened after a crash.
pub(crate) const WAITING_MIN: usize = 16_384;
/// Which part of that there is more before some are written.
const STRETCH: usize = 64;

const RECORDS_AFTER: &str = "SELECT hash, rowid FROM record WHERE rowid > ?1 ORDER BY rowid";

/// The entries that wait, for whoever looks records up in this process.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    entries: RwLock<BTreeSet<Entry>>,
}

impl Recent {
    /// The rows of records with this hash that the index may not have; some may be gone again, or not be there yet.
    pub(crate) fn rows_of(&self, hash: &Hash) -> Vec<i64> {
        rows_of(&self.entries.read(), hash)
    }

    /// The same for whoever does not write, as of the moment at which `view` begins to see the database: what a
    /// record leaves and what it comes to in one commit are then both seen before it, or both after.
    pub(crate) fn rows_of_in(&self, view: &Transaction<'_>, hash: &Hash) -> rusqlite::Result<Vec<i64>> {
        let mut first_look = view.prepare_cached("SELECT 1 FROM meta")?;
        // Meanwhile no entry comes or goes.
        let entries = self.entries.read();
        first_look.query_row([], |_| Ok(()))?;
        Ok(rows_of(&entries, hash))
    }
}

fn rows_of(entries: &BTreeSet<Entry>, hash: &Hash) -> Vec<i64> {
    entries.range(Entry::new(hash, i64::MIN)..=Entry::new(hash, i64::MAX)).map(|entry| entry.row).collect()
}

/// The writer's side. Changes are those of a transaction until they are [kept](Self::keep) or [undone](Self::undo).
#[derive(Debug)]
pub(crate) struct Index {
    recent: Arc<Recent>,
    waiting_min: usize,
    /// No row ever had this number or a higher one: a number that came again could lie below `indexed_row`.
    next_row: i64,
    /// What the transaction has added to `recent` already.
    added: Vec<Entry>,
    /// What is in `recent` and need not be there any more when the transaction holds.
    gone: BTreeSet<Entry>,
    books: Books,
    /// The books as of the last transaction that holds.
    kept: Books,
}

/// How far the index is, and which records are beyond that: what a start after a crash compares the records with.
///
/// Entries are written in the order of the index, from the lowest to the highest, over and over.
#[derive(Clone, Copy, Debug)]
struct Books {
    /// All records up to this row are in the index.
    indexed_row: i64,
    /// Where the round goes on.
    from: Entry,
    /// The highest row when the round began. All rows up to it are in the index when it ends.
    last_row: i64,
    /// The records between the two rows, and those after them.
    older: Tally,
    newer: Tally,
}

impl Books {
    /// Those of a round that begins now, in which `older` have to be written.
    fn of_round(indexed_row: i64, last_row: i64, older: Tally) -> Self {
        Self { indexed_row, from: Entry::LOWEST, last_row, older, newer: Tally::default() }
    }

    fn take(&mut self, entry: &Entry) {
        if entry.row > self.last_row {
            self.newer.take(entry);
        } else if entry.row > self.indexed_row {
            self.older.take(entry);
        }
    }
}

impl Index {
    /// The index as `meta` describes it. What waits has to be [placed](Self::place_waiting) before anything is claimed.
    pub(crate) fn open(meta: &Meta) -> Self {
        let books = Books::of_round(meta.indexed_row, meta.next_row - 1, meta.waiting);
        Self {
            recent: Arc::default(),
            waiting_min: WAITING_MIN,
            next_row: meta.next_row,
            added: Vec::new(),
            gone: BTreeSet::new(),
            books,
            kept: books,
        }
    }

    /// Lets so many entries wait at least.
    pub(crate) fn let_wait(&mut self, waiting_min: usize) {
        self.waiting_min = waiting_min;
    }

    pub(crate) fn recent(&self) -> &Arc<Recent> {
        &self.recent
    }

    /// A row for a new record.
    pub(crate) fn add(&mut self, hash: Hash) -> i64 {
        let row = self.next_row;
        self.next_row += 1;
        let entry = Entry::new(&hash, row);
        self.recent.entries.write().insert(entry);
        self.added.push(entry);
        self.books.newer.add(&entry);
        row
    }

    /// Forgets a record that is being removed.
    pub(crate) fn remove(&mut self, connection: &Connection, hash: Hash, row: i64) -> rusqlite::Result<()> {
        let entry = Entry::new(&hash, row);
        self.books.take(&entry);
        if self.recent.entries.read().contains(&entry) {
            self.gone.insert(entry);
            Ok(())
        } else {
            leaf::remove(connection, &entry)
        }
    }

    /// Writes entries when there are more than need wait, as the last part of a transaction.
    pub(crate) fn place(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let entries = self.recent.entries.read();
        let surplus = entries.len().saturating_sub(self.waiting_min);
        if surplus <= self.waiting_min / STRETCH {
            return Ok(());
        }
        let due: Vec<Entry> = entries.range(self.books.from..).take(surplus).copied().collect();
        drop(entries);
        self.write(connection, &due)?;
        match due.last() {
            Some(last) if due.len() == surplus => self.books.from = last.next(),
            _ => {
                let Books { last_row, newer, .. } = self.books;
                self.books = Books::of_round(last_row, self.next_row - 1, newer);
            }
        }
        Ok(())
    }

    /// Writes all entries, as the last part of the last transaction.
    pub(crate) fn place_all(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let all: Vec<Entry> = self.recent.entries.read().iter().copied().collect();
        self.write(connection, &all)?;
        self.books = Books::of_round(self.next_row - 1, self.next_row - 1, Tally::default());
        Ok(())
    }

    fn write(&mut self, connection: &Connection, entries: &[Entry]) -> rusqlite::Result<()> {
        let mut fresh = Vec::with_capacity(entries.len());
        for entry in entries {
            if self.gone.insert(*entry) {
                fresh.push(*entry);
            }
        }
        leaf::add(connection, &fresh)
    }

    /// What to remember of it when the transaction holds.
    pub(crate) fn note(&self, meta: &mut Meta) {
        meta.indexed_row = self.books.indexed_row;
        meta.next_row = self.next_row;
        meta.waiting = self.books.older.with(self.books.newer);
    }

    /// The transaction holds.
    pub(crate) fn keep(&mut self) {
        self.added.clear();
        if !self.gone.is_empty() {
            let mut entries = self.recent.entries.write();
            while let Some(entry) = self.gone.pop_first() {
                entries.remove(&entry);
            }
        }
        self.kept = self.books;
    }

    /// The transaction left nothing behind.
    pub(crate) fn undo(&mut self) {
        let mut entries = self.recent.entries.write();
        for entry in self.added.drain(..) {
            entries.remove(&entry);
        }
        self.gone.clear();
        self.books = self.kept;
    }

    /// Puts into the index what an earlier process had not put there. Fails as on a damaged page where the records are
    /// not those that it noted.
    pub(crate) fn place_waiting(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let Books { indexed_row, last_row, older, .. } = self.books;
        let mut entries = Vec::new();
        let found = each_record_after(connection, indexed_row, |entry| entries.push(entry))?;
        if found != older || entries.last().is_some_and(|entry| entry.row > last_row) {
            return Err(damaged("the newest records are not those that were written"));
        }
        entries.sort_unstable();
        leaf::add(connection, &entries)?;
        self.books = Books::of_round(last_row, last_row, Tally::default());
        Ok(())
    }
}

/// Looks at the entries of all records after a row, in the order of rows; their tally.
pub(crate) fn each_record_after(
    connection: &Connection,
    row: i64,
    mut look: impl FnMut(Entry),
) -> rusqlite::Result<Tally> {
    let mut statement = connection.prepare_cached(RECORDS_AFTER)?;
    let mut rows = statement.query([row])?;
    let mut tally = Tally::default();
    while let Some(row) = rows.next()? {
        let hash = row.get_ref(0)?.as_blob().ok().and_then(|bytes| Hash::try_from(bytes).ok());
        let hash = hash.ok_or_else(|| damaged("a record has no hash"))?;
        let entry = Entry::new(&hash, row.get(1)?);
        tally.add(&entry);
        look(entry);
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

/// What the engine says of its own pages.
fn damaged(why: &str) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_CORRUPT), Some(why.to_owned()))
}

#[cfg(test)]
mod tests;
