//! [`Leaf`]: one page of the index, which proves what it does not have.
//!
//! The engine keeps no checksums of its pages, so a damaged byte can hide an entry from it. The index is therefore
//! kept in pages of our own, each a row of the table `leaf`: all entries whose key lies between two bounds, sealed
//! with a checksum over the bounds and the entries. The leaves follow each other without a gap, from the lowest key
//! to the highest. A lookup gets the leaf whose bounds enclose the key, or an error: a leaf that
//! is missing, damaged, or reached by a damaged way is never taken for one without the entry.

use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::{CachedStatement, Connection, OptionalExtension as _, ffi};

/// The half of an id that finds it.
pub(crate) type Hash = [u8; 16];

/// Checksum, count of entries, highest key.
const HEADER_LENGTH: usize = 16;
const ENTRY_LENGTH: usize = 24;
/// How many entries a leaf holds before it is split: with them it fills a page of the engine. All leaves have the same
/// length, so the engine writes a leaf over itself and no page keeps an earlier state of one.
const ENTRIES_MAX: usize = 168;

const FIND: &str = "SELECT low, body FROM leaf WHERE low <= ?1 ORDER BY low DESC LIMIT 1";
const FROM: &str = "SELECT low, body FROM leaf WHERE low >= ?1 ORDER BY low LIMIT ?2";
const INSERT: &str = "INSERT INTO leaf (low, body) VALUES (?1, ?2)";
const UPDATE: &str = "UPDATE leaf SET body = ?2 WHERE low = ?1";

/// Whether what does not prove itself is believed.
static TRUSTS: AtomicBool = AtomicBool::new(false);

/// Believes a page of the index that is damaged or missing, as one that has no entries, in all of this process. For tests
/// that must see what that loses.
#[doc(hidden)]
pub fn danger_trust_index() {
    TRUSTS.store(true, Ordering::Relaxed);
}

/// A hash and the row of its record, ordered as the index is.
///
/// The first half of a hash is that of its key, and many scopes may have the same key: the second half, which is
/// random, comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct IndexEntry {
    turned: Hash,
    pub(crate) row: i64,
}

impl IndexEntry {
    pub(crate) const LOWEST: Self = Self { turned: [0; 16], row: i64::MIN };

    pub(crate) fn new(hash: &Hash, row: i64) -> Self {
        Self { turned: turn(hash), row }
    }

    pub(crate) fn hash(&self) -> Hash {
        turn(&self.turned)
    }

    /// The lowest that comes after it.
    pub(crate) fn next(self) -> Self {
        Self { row: self.row + 1, ..self }
    }

    /// Where in the index it is.
    fn key(&self) -> i64 {
        key_of_turned(&self.turned)
    }
}

/// Swaps the halves.
fn turn(hash: &Hash) -> Hash {
    std::array::from_fn(|at| hash[(at + 8) % 16])
}

/// The first eight bytes as a number in the same order.
fn key_of_turned(turned: &Hash) -> i64 {
    let number = u64::from_be_bytes(std::array::from_fn(|at| turned[at]));
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
            bytes.extend_from_slice(&entry.turned);
            bytes.extend_from_slice(&entry.row.to_le_bytes());
        }
        bytes.resize(length, 0);
        let checksum = checksum(self.low, &bytes[4..]);
        bytes[..4].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// The leaf that begins at `low`; none where the bytes are not what was written for it.
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
            turned: std::array::from_fn(|at| bytes[at]),
            row: i64::from_le_bytes(std::array::from_fn(|at| bytes[16 + at])),
        });
        Some(Self { low, high: i64::from_le_bytes(*high), entries: entries.collect() })
    }

    /// The upper half, if there are too many entries and they can be told apart by their keys.
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

    /// Writes it, in as many leaves as its entries need.
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

/// An index without entries.
pub(crate) fn make(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM leaf", [])?;
    Leaf { low: i64::MIN, high: i64::MAX, entries: Vec::new() }.write(connection, INSERT)
}

/// A look into the index, prepared when it is needed first.
pub(crate) struct Look<'c> {
    connection: &'c Connection,
    find: Option<CachedStatement<'c>>,
}

impl<'c> Look<'c> {
    pub(crate) fn new(connection: &'c Connection) -> Self {
        Self { connection, find: None }
    }

    /// The rows of records with this hash. Fails as a damaged page of the engine does where that cannot be told.
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
            None if TRUSTS.load(Ordering::Relaxed) => {
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

/// What the engine says of its own pages.
fn damaged() -> rusqlite::Error {
    let why = "a leaf of the index is damaged or missing".to_owned();
    rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_CORRUPT), Some(why))
}

/// Adds entries, given in their order; those that are there already are left.
pub(crate) fn add(connection: &Connection, entries: &[IndexEntry]) -> rusqlite::Result<()> {
    let mut look = Look::new(connection);
    let mut rest = entries;
    while let Some(first) = rest.first() {
        let mut leaf = look.leaf_of(first)?;
        let (here, later) = rest.split_at(rest.partition_point(|entry| entry.key() <= leaf.high));
        leaf.entries.extend_from_slice(here);
        leaf.entries.sort_unstable();
        leaf.entries.dedup();
        leaf.write(connection, UPDATE)?;
        rest = later;
    }
    Ok(())
}

/// Takes an entry out, if it is there.
pub(crate) fn remove(connection: &Connection, entry: &IndexEntry) -> rusqlite::Result<()> {
    let mut leaf = Look::new(connection).leaf_of(entry)?;
    match leaf.entries.binary_search(entry) {
        Ok(at) => {
            leaf.entries.remove(at);
            leaf.write(connection, UPDATE)
        }
        Err(_) => Ok(()),
    }
}

/// Looks at up to `count_max` leaves in order, the first of which begins at `from`; where the next one begins, unless
/// that was the last. Fails where one of them is damaged or missing.
pub(crate) fn each(
    connection: &Connection,
    from: i64,
    count_max: u32,
    mut look: impl FnMut(&Leaf),
) -> rusqlite::Result<Option<i64>> {
    let mut statement = connection.prepare_cached(FROM)?;
    let mut rows = statement.query((from, count_max))?;
    let mut next = from;
    for _ in 0..count_max {
        let row = rows.next()?.ok_or_else(damaged)?;
        let leaf = read(row)?.filter(|leaf| leaf.low == next && leaf.high >= next).ok_or_else(damaged)?;
        look(&leaf);
        match leaf.high.checked_add(1) {
            Some(after) => next = after,
            None => return Ok(None),
        }
    }
    Ok(Some(next))
}

#[cfg(test)]
mod tests;
