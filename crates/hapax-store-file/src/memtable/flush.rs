//! Flushing index entries from the memtable to the index in SQLite.
//!
//! Entries are flushed in rounds, from the lowest to the highest and over again. Row numbers grow, so a round that
//! ends has flushed every row that was there when it began, and `meta.indexed_row` moves up to it. The rows above are found
//! in the table after a crash. A digest of them is stored with every commit, so that a missing one is detected.

use rusqlite::Connection;

use super::Memtable;
use crate::index;
use crate::leaf::{self, IndexEntry};
use crate::meta::{Meta, SetDigest};

/// How many entries stay in the memtable when the store is busy. It bounds what has to be flushed when the store is
/// closed, or opened after a crash.
pub(crate) const ENTRIES_KEPT: usize = 16_384;
/// The surplus that starts a flush, as a part of that.
pub(super) const STRETCH: usize = 64;

/// How far the index is complete, and which records are beyond that.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlushProgress {
    /// All records up to this row are in the index.
    indexed_row: i64,
    /// Where the round goes on.
    pub(super) from: IndexEntry,
    /// The highest row when the round began. All rows up to it are in the index when it ends.
    last_row: i64,
    /// The records between the two rows, and those after them.
    older: SetDigest,
    newer: SetDigest,
    /// How many entries of the memtable the index does not have.
    pub(super) missing: usize,
}

impl FlushProgress {
    pub(super) fn of(meta: &Meta) -> Self {
        let (indexed_row, last_row) = (meta.indexed_row, meta.next_row - 1);
        let (from, older, newer) = (IndexEntry::LOWEST, meta.waiting, SetDigest::default());
        Self { indexed_row, from, last_row, older, newer, missing: 0 }
    }

    pub(super) fn add(&mut self, entry: &IndexEntry) {
        self.newer.add(entry);
        self.missing += 1;
    }

    pub(super) fn remove(&mut self, entry: &IndexEntry) {
        if entry.row > self.last_row {
            self.newer.take(entry);
        } else if entry.row > self.indexed_row {
            self.older.take(entry);
        }
    }

    /// The round has flushed all entries up to `last_row`, and another one begins.
    fn end_round(&mut self, next_row: i64) {
        (self.indexed_row, self.last_row) = (self.last_row, next_row - 1);
        (self.older, self.newer) = (self.newer, SetDigest::default());
        self.from = IndexEntry::LOWEST;
    }

    /// The index has all rows.
    fn end_all(&mut self, next_row: i64) {
        self.end_round(next_row);
        self.end_round(next_row);
    }
}

impl Memtable {
    /// Keeps at least so many entries.
    pub(crate) fn keep_at_least(&mut self, kept_min: usize) {
        self.kept_min = kept_min;
    }

    /// Flushes surplus entries, as the last part of a transaction.
    pub(crate) fn flush(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let surplus = self.progress.missing.saturating_sub(self.kept_min);
        if surplus <= self.kept_min / STRETCH {
            return Ok(());
        }
        let due = self.missing_from(self.progress.from, surplus);
        self.write_to_index(connection, &due)?;
        match due.last() {
            Some(last) if due.len() == surplus => self.progress.from = last.next(),
            _ => self.progress.end_round(self.next_row),
        }
        Ok(())
    }

    /// Flushes all entries, as the last part of the last transaction.
    pub(crate) fn flush_all(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let all = self.missing_from(IndexEntry::LOWEST, usize::MAX);
        self.write_to_index(connection, &all)?;
        self.progress.end_all(self.next_row);
        Ok(())
    }

    /// Flushes the entries that only the memtable of an earlier process had. Fails like a damaged page if the records do not
    /// match the stored digest.
    pub(crate) fn flush_left_by_crash(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let FlushProgress { indexed_row, last_row, older, .. } = self.progress;
        let mut entries = Vec::new();
        let found = index::each_record_after(connection, indexed_row, |entry| entries.push(entry))?;
        if found != older || entries.last().is_some_and(|entry| entry.row > last_row) {
            return Err(index::damaged("the newest records do not match their digest"));
        }
        entries.sort_unstable();
        leaf::add(connection, &entries)?;
        self.progress.end_all(self.next_row);
        Ok(())
    }

    /// Stores the progress in `meta`, for the commit of the open transaction.
    pub(crate) fn note(&self, meta: &mut Meta) {
        meta.indexed_row = self.progress.indexed_row;
        meta.next_row = self.next_row;
        meta.waiting = self.progress.older.with(self.progress.newer);
    }

    /// Up to `count_max` entries that the index does not have, in order.
    fn missing_from(&self, from: IndexEntry, count_max: usize) -> Vec<IndexEntry> {
        let entries = self.entries.0.read();
        let missing = entries.range(from..).filter(|(_, entry)| !entry.is_leaving);
        missing.map(|(at, _)| *at).take(count_max).collect()
    }

    fn write_to_index(&mut self, connection: &Connection, due: &[IndexEntry]) -> rusqlite::Result<()> {
        leaf::add(connection, due)?;
        let mut entries = self.entries.0.write();
        for at in due {
            entries.entry(*at).and_modify(|entry| entry.is_leaving = true);
        }
        self.changed.extend_from_slice(due);
        self.progress.missing -= due.len();
        Ok(())
    }
}
