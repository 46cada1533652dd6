//! [`Memtable`]: the records and index entries that SQLite does not have yet.
//!
//! A lookup probes the memtable, then the index in SQLite ([`leaf`](crate::leaf)). The entries have the order of that
//! index: ids are as good as random, so an entry that is written with its record dirties a page of its own, and entries
//! that are flushed in order share pages.
//!
//! An entry is a row of the table `record`, from when the row gets its number:
//!
//! | stage | the record is in | the index entry is in | after a crash it is found in |
//! |---|---|---|---|
//! | unwritten | the memtable | the memtable | the write-ahead log |
//! | written | the open transaction | the memtable | the write-ahead log |
//! | committed | the table | the memtable | the rows above `meta.indexed_row` |
//! | flushed | the table | the index | the index |
//!
//! Most claims end while they are unwritten and are written once. A change to a record that the index has already
//! makes an entry too, which begins as unwritten and leaves with the commit.
//!
//! The flags of an entry belong to the open transaction. A commit clears them and removes the leaving entries: flushed
//! ones, and those of removed records. Until then they stay, because a reader's view of the database may be older than the
//! commit. A rollback returns the memtable to the last commit, after which the writer replays the write-ahead log.
//!
//! Invariant: in every view of the database, with the entries as of the beginning of the view, each record is in the memtable
//! or in the index.

use std::collections::BTreeSet;
use std::collections::btree_map::{self, BTreeMap};
use std::ops::RangeInclusive;
use std::sync::Arc;

use hapax_core::codec::Encoded;
use hapax_core::{Record, RecordId, State};
use parking_lot::RwLock;
use rusqlite::{Connection, Transaction};

pub(crate) use self::flush::ENTRIES_KEPT;
use self::flush::FlushProgress;
use crate::leaf::{self, Hash, IndexEntry};
use crate::meta::Meta;
use crate::row::{Row, hash_of};

/// How many bytes may be acknowledged before they are written to the database: they are held in memory until then.
pub(crate) const AHEAD_BYTES_MAX: u64 = 1 << 20;

/// How many ended records are written to the database together, if their bytes are not too many: one after
/// the other they take less time than one now and then.
pub(crate) const ENDED_MIN: usize = 64;

/// The writer's side of the memtable.
#[derive(Debug)]
pub(crate) struct Memtable {
    entries: Arc<Entries>,
    /// The entries with a record, so that writing them need not search all entries.
    unwritten: BTreeSet<IndexEntry>,
    /// How many of these records have ended, and how many bytes they have.
    ended: usize,
    ended_bytes: u64,
    /// The entries with a flag, so that a commit need not go through all entries.
    changed: Vec<IndexEntry>,
    /// No row ever had this number or a higher one, also after a rollback: a number that came again could lie below
    /// `meta.indexed_row`.
    next_row: i64,
    kept_min: usize,
    progress: FlushProgress,
    /// The progress as of the last commit.
    committed: FlushProgress,
}

/// The entries, which reader threads look up too.
#[derive(Debug, Default)]
pub(crate) struct Entries(RwLock<BTreeMap<IndexEntry, Entry>>);

#[derive(Debug)]
struct Entry {
    /// The record, until it is written to its row.
    record: Option<Box<Unwritten>>,
    /// The open transaction has added it: a rollback removes it.
    is_new: bool,
    /// In the open transaction the index has it, or its record is removed: the commit removes it.
    is_leaving: bool,
}

/// A record that is to be written to the database.
#[derive(Debug)]
pub(crate) struct Unwritten {
    pub(crate) rowid: i64,
    /// The content of the row in the table; none if it was never written.
    pub(crate) replaces: Option<Box<Row>>,
    pub(crate) record: Record,
    pub(crate) encoded: Encoded,
}

/// Which unwritten records are meant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Records {
    All,
    /// Those that are not in progress.
    Ended,
}

/// The result of a lookup in the memtable.
#[derive(Debug)]
pub(crate) enum Probe {
    Unwritten(Box<Unwritten>),
    /// The rows to read before the index, which may lack them.
    Rows(Vec<i64>),
}

impl Unwritten {
    fn at(&self) -> IndexEntry {
        IndexEntry::new(&hash_of(&self.record.key.id), self.rowid)
    }

    fn has_ended(&self) -> bool {
        self.record.state() != State::InProgress
    }

    fn bytes(&self) -> u64 {
        (self.encoded.head.len() + self.encoded.outcome.as_ref().map_or(0, Vec::len)) as u64
    }
}

impl Entries {
    /// The rows to read for this hash, on the writer's own connection.
    pub(crate) fn rows_of(&self, hash: &Hash) -> Vec<i64> {
        rows_of(&self.0.read(), hash)
    }

    /// The rows to read for this hash in `view`, which begins here. The entries are those of the moment at which it
    /// begins: a record that moves to another row in one commit is seen before the commit or after it.
    pub(crate) fn rows_of_in(&self, view: &Transaction<'_>, hash: &Hash) -> rusqlite::Result<Vec<i64>> {
        let mut first_read = view.prepare_cached("SELECT 1 FROM meta")?;
        // Holds off the commit's changes to the entries until the view has begun.
        let entries = self.0.read();
        first_read.query_row([], |_| Ok(()))?;
        Ok(rows_of(&entries, hash))
    }
}

fn rows_of(entries: &BTreeMap<IndexEntry, Entry>, hash: &Hash) -> Vec<i64> {
    entries.range(range_of(hash)).map(|(at, _)| at.row).collect()
}

/// All rows of one hash. Ids with the same first half share it.
fn range_of(hash: &Hash) -> RangeInclusive<IndexEntry> {
    IndexEntry::new(hash, i64::MIN)..=IndexEntry::new(hash, i64::MAX)
}

impl Memtable {
    /// An empty memtable over the database that `meta` describes. Entries that a crash has left out of the index have to be
    /// [flushed](Self::flush_left_by_crash) before any claim.
    pub(crate) fn new(meta: &Meta) -> Self {
        let progress = FlushProgress::of(meta);
        Self {
            entries: Arc::default(),
            unwritten: BTreeSet::new(),
            ended: 0,
            ended_bytes: 0,
            changed: Vec::new(),
            next_row: meta.next_row,
            kept_min: ENTRIES_KEPT,
            progress,
            committed: progress,
        }
    }

    pub(crate) fn entries(&self) -> &Arc<Entries> {
        &self.entries
    }

    /// Looks up an id. An unwritten record is taken out; the caller has to [hold](Self::hold) it or its replacement.
    pub(crate) fn probe(&mut self, id: &RecordId) -> Probe {
        let mut entries = self.entries.0.write();
        let mut rows = Vec::new();
        for (at, entry) in entries.range_mut(range_of(&hash_of(id))) {
            match entry.record.take_if(|unwritten| unwritten.record.key.id == *id) {
                Some(unwritten) => {
                    if unwritten.has_ended() {
                        self.ended -= 1;
                        self.ended_bytes -= unwritten.bytes();
                    }
                    return Probe::Unwritten(unwritten);
                }
                None => rows.push(at.row),
            }
        }
        Probe::Rows(rows)
    }

    /// A row number for a new record.
    pub(crate) fn add(&mut self, hash: Hash) -> i64 {
        let row = self.next_row;
        self.next_row += 1;
        let at = IndexEntry::new(&hash, row);
        let entry = Entry { record: None, is_new: true, is_leaving: false };
        self.entries.0.write().insert(at, entry);
        self.changed.push(at);
        self.progress.add(&at);
        row
    }

    /// Holds a record until it is [taken](Self::take) to be written.
    pub(crate) fn hold(&mut self, unwritten: Box<Unwritten>) {
        if unwritten.has_ended() {
            self.ended += 1;
            self.ended_bytes += unwritten.bytes();
        }
        let at = unwritten.at();
        self.unwritten.insert(at);
        match self.entries.0.write().entry(at) {
            btree_map::Entry::Occupied(mut entry) => entry.get_mut().record = Some(unwritten),
            // The row was found by the index in SQLite, which keeps it.
            btree_map::Entry::Vacant(vacant) => {
                vacant.insert(Entry { record: Some(unwritten), is_new: true, is_leaving: true });
                self.changed.push(at);
            }
        }
    }

    pub(crate) fn has_unwritten(&self) -> bool {
        !self.unwritten.is_empty()
    }

    /// Whether enough records have ended to write them.
    pub(crate) fn has_many_ended(&self) -> bool {
        self.ended >= ENDED_MIN || self.ended_bytes >= AHEAD_BYTES_MAX
    }

    /// Takes out the records to write, ordered by row: neighbours share a page.
    #[expect(clippy::vec_box, reason = "they are large, and sorted")]
    pub(crate) fn take(&mut self, records: Records) -> Vec<Box<Unwritten>> {
        let mut taken = Vec::new();
        let mut entries = self.entries.0.write();
        self.unwritten.retain(|at| {
            let Some(entry) = entries.get_mut(at) else { return false };
            taken.extend(entry.record.take_if(|record| records == Records::All || record.has_ended()));
            entry.record.is_some()
        });
        drop(entries);
        (self.ended, self.ended_bytes) = (0, 0);
        taken.sort_unstable_by_key(|unwritten| unwritten.rowid);
        taken
    }

    /// Removes the index entry of a record that is removed from its row, or was never written to it.
    pub(crate) fn remove(&mut self, connection: &Connection, hash: Hash, row: i64) -> rusqlite::Result<()> {
        let at = IndexEntry::new(&hash, row);
        self.progress.remove(&at);
        match self.entries.0.write().get_mut(&at) {
            Some(entry) if !entry.is_leaving => {
                entry.is_leaving = true;
                self.changed.push(at);
                self.progress.missing -= 1;
                return Ok(());
            }
            _ => {}
        }
        leaf::remove(connection, &at)
    }

    /// The open transaction was committed.
    pub(crate) fn commit(&mut self) {
        debug_assert!(self.unwritten.is_empty(), "a commit has everything that was acknowledged");
        let mut entries = self.entries.0.write();
        for at in self.changed.drain(..) {
            if let btree_map::Entry::Occupied(mut entry) = entries.entry(at) {
                if entry.get().is_leaving {
                    entry.remove();
                } else {
                    entry.get_mut().is_new = false;
                }
            }
        }
        self.committed = self.progress;
    }

    /// The open transaction has left nothing in the database.
    pub(crate) fn roll_back(&mut self) {
        let mut entries = self.entries.0.write();
        while let Some(at) = self.unwritten.pop_first() {
            entries.entry(at).and_modify(|entry| entry.record = None);
        }
        for at in self.changed.drain(..) {
            if let btree_map::Entry::Occupied(mut entry) = entries.entry(at) {
                if entry.get().is_new {
                    entry.remove();
                } else {
                    entry.get_mut().is_leaving = false;
                }
            }
        }
        (self.ended, self.ended_bytes) = (0, 0);
        self.progress = self.committed;
    }
}

mod flush;
#[cfg(test)]
mod tests;
