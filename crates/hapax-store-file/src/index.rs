//! [`Index`]: the way from an id to its row, of which the newest entries are in memory only.
//!
//! Ids are as good as random, so an entry that is written with its record dirties a page of its own. Entries wait
//! here until there are many, and are then written in the order of the index: neighbours share a page. What waits
//! is in the rows themselves, above the row up to which the index is known to be complete; whoever opens the store
//! after a crash, or looks at it from another process, finds it there.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::RwLock;
use rusqlite::{Connection, OptionalExtension as _, Transaction};

use crate::filter::Filter;

/// How many entries wait at least before any is written, when the store is busy. It bounds what has to be written
/// when the store is closed, or opened after a crash.
pub(crate) const WAITING_MIN: usize = 16_384;
/// Which part of that there is more before some are written.
const STRETCH: usize = 64;

const PLACE: &str = "INSERT OR IGNORE INTO place (hash, row) VALUES (?1, ?2)";
const PLACE_ALL: &str = "INSERT OR IGNORE INTO place (hash, row) SELECT hash, rowid FROM record \
                         WHERE rowid > (SELECT indexed_row FROM meta) ORDER BY hash";
const FORGET: &str = "DELETE FROM place WHERE hash = ?1 AND row = ?2";
const LAST_ROW: &str = "SELECT max(ifnull((SELECT max(rowid) FROM record), 0), indexed_row) FROM meta";
const SOME_WAIT: &str = "SELECT 1 FROM record WHERE rowid > (SELECT indexed_row FROM meta) LIMIT 1";

/// The half of an id that finds it.
pub(crate) type Hash = [u8; 16];
/// A hash and the row of its record.
type Entry = (Hash, i64);

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
    entries.range((*hash, i64::MIN)..=(*hash, i64::MAX)).map(|(_, row)| *row).collect()
}

/// The writer's side. Changes are those of a transaction until they are [kept](Self::keep) or [undone](Self::undo).
#[derive(Debug)]
pub(crate) struct Index {
    recent: Arc<Recent>,
    /// What is in the database, or has been.
    pub(crate) filter: Filter,
    waiting_min: usize,
    /// No row ever had this number or a higher one: a number that came again could lie below `indexed_row`.
    next_row: i64,
    round: Round,
    /// What the transaction has added to `recent` already.
    added: Vec<Entry>,
    /// What is in `recent` and need not be there any more when the transaction holds.
    gone: BTreeSet<Entry>,
    /// Where the round will be when the transaction holds.
    next_round: Option<Round>,
}

/// Entries are written from the lowest hash to the highest, over and over.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// Where it goes on.
    from: Entry,
    /// The highest row when it began. All rows up to it are in the index when it ends.
    last_row: i64,
}

impl Round {
    fn starting_after(last_row: i64) -> Self {
        Self { from: ([0; 16], i64::MIN), last_row }
    }
}

impl Index {
    /// The index of a database in which nothing waits, or all that does will be [placed](place_all) first.
    pub(crate) fn open(connection: &Connection, waiting_min: usize) -> rusqlite::Result<Self> {
        let last_row: i64 = connection.query_row(LAST_ROW, [], |row| row.get(0))?;
        Ok(Self {
            recent: Arc::default(),
            filter: Filter::default(),
            waiting_min,
            next_row: last_row + 1,
            round: Round::starting_after(last_row),
            added: Vec::new(),
            gone: BTreeSet::new(),
            next_round: None,
        })
    }

    pub(crate) fn recent(&self) -> &Arc<Recent> {
        &self.recent
    }

    /// A row for a new record.
    pub(crate) fn add(&mut self, hash: Hash) -> i64 {
        let row = self.next_row;
        self.next_row += 1;
        self.recent.entries.write().insert((hash, row));
        self.added.push((hash, row));
        row
    }

    /// Forgets a record that is being removed.
    pub(crate) fn remove(&mut self, connection: &Connection, hash: Hash, row: i64) -> rusqlite::Result<()> {
        if self.recent.entries.read().contains(&(hash, row)) {
            self.gone.insert((hash, row));
        } else {
            connection.prepare_cached(FORGET)?.execute((hash, row))?;
        }
        Ok(())
    }

    /// Writes entries when there are more than need wait, as the last part of a transaction.
    pub(crate) fn place(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let entries = self.recent.entries.read();
        let surplus = entries.len().saturating_sub(self.waiting_min);
        if surplus <= self.waiting_min / STRETCH {
            return Ok(());
        }
        let due: Vec<Entry> = entries.range(self.round.from..).take(surplus).copied().collect();
        drop(entries);
        let mut statement = connection.prepare_cached(PLACE)?;
        for entry in &due {
            if self.gone.insert(*entry) {
                let (hash, _) = entry;
                self.filter.add(hash);
                statement.execute(*entry)?;
            }
        }
        self.next_round = Some(match due.last() {
            Some((hash, row)) if due.len() == surplus => Round { from: (*hash, row + 1), ..self.round },
            _ => {
                note_indexed(connection, self.round.last_row)?;
                Round::starting_after(self.next_row - 1)
            }
        });
        Ok(())
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
        self.round = self.next_round.take().unwrap_or(self.round);
        self.filter.renew_if_full();
    }

    /// The transaction left nothing behind.
    pub(crate) fn undo(&mut self) {
        let mut entries = self.recent.entries.write();
        for entry in self.added.drain(..) {
            entries.remove(&entry);
        }
        self.gone.clear();
        self.next_round = None;
    }
}

/// Writes all entries that wait; whether there were any. The memory of a writer that goes on would not know.
pub(crate) fn place_all(connection: &Connection) -> rusqlite::Result<bool> {
    if connection.query_row(SOME_WAIT, [], |_| Ok(())).optional()?.is_none() {
        return Ok(false);
    }
    let last_row = connection.query_row(LAST_ROW, [], |row| row.get(0))?;
    connection.execute(PLACE_ALL, [])?;
    note_indexed(connection, last_row)?;
    Ok(true)
}

fn note_indexed(connection: &Connection, row: i64) -> rusqlite::Result<()> {
    connection.prepare_cached("UPDATE meta SET indexed_row = ?1")?.execute([row])?;
    Ok(())
}

#[cfg(test)]
mod tests;
