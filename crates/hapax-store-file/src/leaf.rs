//! [`Leaf`]: a page of the index with a checksum, which proves that an entry is absent.
//!
//! SQLite keeps no checksums of its pages, so a damaged byte can hide an entry from it. The index is therefore kept in
//! pages of our own, each a row of the table `leaf`: all entries with keys between two bounds, and a checksum over the
//! bounds and the entries. The leaves cover all keys without a gap. A lookup returns the leaf whose bounds enclose the key,
//! or an error: a leaf that is missing, damaged, or reached through a damaged page never counts as one without the entry.

use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::{CachedStatement, Connection, OptionalExtension as _, ffi};

/// The first half of an id, which the index has.
pub(crate) type Hash = [u8; 16];

/// Checksum, number of entries, highest key.
const HEADER_LENGTH: usize = 16;
const ENTRY_LENGTH: usize = 24;
/// A leaf with more entries is split: with this many it fills a page of SQLite. All leaves have the same length, so SQLite
/// overwrites a leaf in place and no page keeps an earlier state of one.
const ENTRIES_MAX: usize = 168;

const FIND: &str = "SELECT low, body FROM leaf WHERE low <= ?1 ORDER BY low DESC LIMIT 1";
const FROM: &str = "SELECT low, body FROM leaf WHERE low >= ?1 ORDER BY low LIMIT ?2";
const INSERT: &str = "INSERT INTO leaf (low, body) VALUES (?1, ?2)";
const UPDATE: &str = "UPDATE leaf SET body = ?2 WHERE low = ?1";

/// Whether leaves are used without a valid checksum.
static TRUSTS_INDEX: AtomicBool = AtomicBool::new(false);

/// Treats a damaged or missing page of the index as one without entries, in this whole process. For tests that show
/// what the checksums prevent.
#[doc(hidden)]
pub fn danger_trust_index() {
    TRUSTS_INDEX.store(true, Ordering::Relaxed);
}

/// A hash and the row of its record, in the order of the index.
///
/// The first half of a hash depends on the key only, and many scopes may have the same key: the order is by the second
/// half, which is random.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct IndexEntry {
    swapped: Hash,
    pub(crate) row: i64,
}

impl IndexEntry {
    pub(crate) const LOWEST: Self = Self { swapped: [0; 16], row: i64::MIN };

    pub(crate) fn new(hash: &Hash, row: i64) -> Self {
        Self { swapped: swap_halves(hash), row }
    }

    pub(crate) fn hash(&self) -> Hash {
        swap_halves(&self.swapped)
    }

    /// The next possible entry.
    pub(crate) fn next(self) -> Self {
        Self { row: self.row + 1, ..self }
    }

    /// Its key in the index.
    fn key(&self) -> i64 {
        key_of_swapped(&self.swapped)
    }
}

fn swap_halves(hash: &Hash) -> Hash {
    std::array::from_fn(|at| hash[(at + 8) % 16])
}

/// The first eight bytes as a number in the same order.
fn key_of_swapped(swapped: &Hash) -> i64 {
    let number = u64::from_be_bytes(std::array::from_fn(|at| swapped[at]));
    (number ^ (1 << 63)).cast_signed()
}

/// All entries of the index between two keys, both included.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Leaf {
    low: i64,
    high: i64,
    entries: Vec<IndexEntry>,
}

impl Leaf {
    pub(crate) fn entries(&self) -> &[IndexEntry] {
        &self.entries
    }

    fn rows_of(&self, hash: &Hash) -> Vec<i64> {
        let first = self.entries.partition_point(|entry| *entry < IndexEntry::new(hash, i64::MIN));
        let of_hash = self.entries[first..].iter().take_while(|entry| entry.hash() == *hash);
        of_hash.map(|entry| entry.row).collect()
    }

    fn to_bytes(&self) -> Vec<u8> {
        let length = HEADER_LENGTH + ENTRY_LENGTH * self.entries.len().max(ENTRIES_MAX);
        let mut bytes = Vec::with_capacity(length);
        bytes.extend_from_slice(&[0; 4]);
        let count = u32::try_from(self.entries.len()).expect("a leaf has few entries");
        bytes.extend_from_slice(&count.to_le_bytes());
        bytes.extend_from_slice(&self.high.to_le_bytes());
        for entry in &self.entries {
            bytes.extend_from_slice(&entry.swapped);
            bytes.extend_from_slice(&entry.row.to_le_bytes());
        }
        bytes.resize(length, 0);
        let checksum = checksum(self.low, &bytes[4..]);
        bytes[..4].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// The leaf that begins at `low`; none if its checksum does not match.
    fn from_bytes(low: i64, bytes: &[u8]) -> Option<Self> {
        let (stored, rest) = bytes.split_first_chunk()?;
        if u32::from_le_bytes(*stored) != checksum(low, rest) {
            return None;
        }
        let (count, rest) = rest.split_first_chunk()?;
        let (high, rest) = rest.split_first_chunk()?;
        let (entries, _) = rest.as_chunks::<ENTRY_LENGTH>();
        let entries = entries.get(..u32::from_le_bytes(*count) as usize)?;
        let entries = entries.iter().map(|bytes| IndexEntry {
            swapped: std::array::from_fn(|at| bytes[at]),
            row: i64::from_le_bytes(std::array::from_fn(|at| bytes[16 + at])),
        });
        Some(Self { low, high: i64::from_le_bytes(*high), entries: entries.collect() })
    }

    /// The upper half, if there are too many entries and their keys differ.
    fn split(&mut self) -> Option<Self> {
        if self.entries.len() <= ENTRIES_MAX {
            return None;
        }
        let middle = self.entries[self.entries.len() / 2].key();
        let bound = match self.entries.partition_point(|entry| entry.key() < middle) {
            0 => self.entries.partition_point(|entry| entry.key() <= middle),
            bound => bound,
        };
        let low = self.entries.get(bound)?.key();
        let upper = Self { low, high: self.high, entries: self.entries.split_off(bound) };
        self.high = low - 1;
        Some(upper)
    }

    /// Writes it, split into as many leaves as it needs.
    fn write(mut self, connection: &Connection, statement: &str) -> rusqlite::Result<()> {
        let upper = self.split();
        if upper.is_some() {
            self.write(connection, statement)?;
        } else {
            connection.prepare_cached(statement)?.execute((self.low, self.to_bytes()))?;
        }
        upper.map_or(Ok(()), |upper| upper.write(connection, INSERT))
    }
}

fn checksum(low: i64, rest: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&low.to_le_bytes());
    hasher.update(rest);
    hasher.finalize()
}

/// Creates an empty index.
pub(crate) fn create(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM leaf", [])?;
    Leaf { low: i64::MIN, high: i64::MAX, entries: Vec::new() }.write(connection, INSERT)
}

/// Looks up the index, with a statement that is prepared when it is first needed.
pub(crate) struct IndexLookup<'c> {
    connection: &'c Connection,
    find: Option<CachedStatement<'c>>,
}

impl<'c> IndexLookup<'c> {
    pub(crate) fn new(connection: &'c Connection) -> Self {
        Self { connection, find: None }
    }

    /// The rows of records with this hash. A damaged or missing leaf is an error like that of a damaged page of SQLite.
    pub(crate) fn rows_of(&mut self, hash: &Hash) -> rusqlite::Result<Vec<i64>> {
        Ok(self.leaf_of(&IndexEntry::new(hash, 0))?.rows_of(hash))
    }

    fn leaf_of(&mut self, entry: &IndexEntry) -> rusqlite::Result<Leaf> {
        let find = match &mut self.find {
            Some(find) => find,
            none => none.insert(self.connection.prepare_cached(FIND)?),
        };
        let key = entry.key();
        let leaf = find.query_row([key], read).optional()?.flatten();
        match leaf.filter(|leaf| leaf.low <= key && key <= leaf.high) {
            Some(leaf) => Ok(leaf),
            None if TRUSTS_INDEX.load(Ordering::Relaxed) => {
                Ok(Leaf { low: i64::MIN, high: i64::MAX, entries: Vec::new() })
            }
            None => Err(damaged()),
        }
    }
}

fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Option<Leaf>> {
    let (low, body) = (row.get_ref(0)?, row.get_ref(1)?);
    Ok(match (low.as_i64(), body.as_blob()) {
        (Ok(low), Ok(body)) => Leaf::from_bytes(low, body),
        _ => None,
    })
}

/// The error of SQLite for its own damaged pages.
fn damaged() -> rusqlite::Error {
    let why = "a leaf of the index is damaged or missing".to_owned();
    rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_CORRUPT), Some(why))
}

/// Adds entries, given in order; existing ones are left.
pub(crate) fn add(connection: &Connection, entries: &[IndexEntry]) -> rusqlite::Result<()> {
    let mut lookup = IndexLookup::new(connection);
    let mut rest = entries;
    while let Some(first) = rest.first() {
        let mut leaf = lookup.leaf_of(first)?;
        let (here, later) = rest.split_at(rest.partition_point(|entry| entry.key() <= leaf.high));
        leaf.entries.extend_from_slice(here);
        leaf.entries.sort_unstable();
        leaf.entries.dedup();
        leaf.write(connection, UPDATE)?;
        rest = later;
    }
    Ok(())
}

/// Removes an entry, if it exists.
pub(crate) fn remove(connection: &Connection, entry: &IndexEntry) -> rusqlite::Result<()> {
    let mut leaf = IndexLookup::new(connection).leaf_of(entry)?;
    match leaf.entries.binary_search(entry) {
        Ok(at) => {
            leaf.entries.remove(at);
            leaf.write(connection, UPDATE)
        }
        Err(_) => Ok(()),
    }
}

/// Visits up to `count_max` leaves in order, the first of which begins at `from`. Returns where the next one begins, or none
/// after the last. A damaged or missing leaf is an error.
pub(crate) fn each(
    connection: &Connection,
    from: i64,
    count_max: u32,
    mut visit: impl FnMut(&Leaf),
) -> rusqlite::Result<Option<i64>> {
    let mut statement = connection.prepare_cached(FROM)?;
    let mut rows = statement.query((from, count_max))?;
    let mut next = from;
    for _ in 0..count_max {
        let row = rows.next()?.ok_or_else(damaged)?;
        let leaf = read(row)?.filter(|leaf| leaf.low == next && leaf.high >= next).ok_or_else(damaged)?;
        visit(&leaf);
        match leaf.high.checked_add(1) {
            Some(after) => next = after,
            None => return Ok(None),
        }
    }
    Ok(Some(next))
}

#[cfg(test)]
mod tests;
