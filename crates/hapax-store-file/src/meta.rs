//! [`Meta`]: the state of the store itself, in one row with a checksum.

use hapax_core::Timestamp;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ffi};

use crate::leaf::IndexEntry;
use crate::row::millis;
use crate::wal::Generation;

const READ: &str = "SELECT seen_ms, indexed_row, next_row, waiting, waiting_sum, journal, salt, is_open, seal \
                    FROM meta WHERE rowid = 1";
const WRITE: &str = "INSERT OR REPLACE INTO meta \
                     (rowid, seen_ms, indexed_row, next_row, waiting, waiting_sum, journal, salt, is_open, seal) \
                     VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";

/// Stands in place of the checksum if the index is to be rebuilt from the records.
const REBUILD: &[u8] = b"anew";

/// The numbers in the row.
const NUMBERS: usize = 8;

/// The row `meta`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Meta {
    /// No decision was made at a later time.
    pub(crate) seen: Timestamp,
    /// All records up to this row are in the index.
    pub(crate) indexed_row: i64,
    /// No record ever had this row number or a higher one.
    pub(crate) next_row: i64,
    /// The records after `indexed_row`.
    pub(crate) waiting: SetDigest,
    /// The database has everything up to this generation of the write-ahead log.
    pub(crate) wal_generation: i64,
    /// The salt of the next generation's frames.
    pub(crate) salt: i64,
    /// Whether a process owns the store, or died while it did: then the write-ahead log must exist.
    pub(crate) is_open: bool,
}

/// A digest of a set of index entries, which detects a missing or changed one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct SetDigest {
    count: i64,
    sum: i64,
}

/// The row as it was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MetaRow {
    Sealed(Meta),
    /// A person has asked for the index to be rebuilt.
    Rebuild(Meta),
    Damaged,
}

impl SetDigest {
    pub(crate) fn add(&mut self, entry: &IndexEntry) {
        self.count += 1;
        self.sum = self.sum.wrapping_add(digest(entry));
    }

    pub(crate) fn take(&mut self, entry: &IndexEntry) {
        self.count -= 1;
        self.sum = self.sum.wrapping_sub(digest(entry));
    }

    pub(crate) fn with(self, other: Self) -> Self {
        Self { count: self.count + other.count, sum: self.sum.wrapping_add(other.sum) }
    }
}

/// Mixes all bits of an entry.
fn digest(entry: &IndexEntry) -> i64 {
    let hash = entry.hash();
    let half = |at: usize| u64::from_le_bytes(std::array::from_fn(|n| hash[at + n]));
    let words = [half(0), half(8), entry.row.cast_unsigned()];
    let mixed = words.iter().fold(0_u64, |mixed, word| {
        let mixed = (mixed ^ word).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 29)
    });
    mixed.cast_signed()
}

impl Meta {
    /// The row of an empty store.
    pub(crate) fn new(salt: i64) -> Self {
        Self {
            seen: Timestamp::from_millis(0),
            indexed_row: 0,
            next_row: 1,
            waiting: SetDigest::default(),
            wal_generation: 0,
            salt,
            is_open: false,
        }
    }

    /// The generation of the write-ahead log after the one in the database.
    pub(crate) fn next_generation(&self) -> Generation {
        Generation { number: self.wal_generation.unsigned_abs() + 1, salt: self.salt }
    }

    pub(crate) fn read(connection: &Connection) -> rusqlite::Result<MetaRow> {
        let mut statement = connection.prepare_cached(READ)?;
        let mut rows = statement.query([])?;
        let Some(row) = rows.next()? else {
            return Ok(MetaRow::Damaged);
        };
        let mut numbers = [0; NUMBERS];
        for (at, number) in numbers.iter_mut().enumerate() {
            match row.get_ref(at)? {
                ValueRef::Integer(stored) => *number = stored,
                _ => return Ok(MetaRow::Damaged),
            }
        }
        let meta = Self::from_numbers(numbers);
        Ok(match row.get_ref(NUMBERS)? {
            ValueRef::Blob(seal) if seal == seal_of(&numbers) => MetaRow::Sealed(meta),
            ValueRef::Text(REBUILD) => MetaRow::Rebuild(meta),
            _ => MetaRow::Damaged,
        })
    }

    /// The row with a valid checksum. Any other is an error like that of a damaged page of SQLite.
    pub(crate) fn read_sealed(connection: &Connection) -> rusqlite::Result<Self> {
        match Self::read(connection)? {
            MetaRow::Sealed(meta) => Ok(meta),
            MetaRow::Rebuild(_) | MetaRow::Damaged => {
                let why = "the row in meta is damaged".to_owned();
                Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_CORRUPT), Some(why)))
            }
        }
    }

    pub(crate) fn write(&self, connection: &Connection) -> rusqlite::Result<()> {
        let [seen, indexed_row, next_row, waiting, sum, wal_generation, salt, is_open] = self.numbers();
        let seal = seal_of(&self.numbers());
        connection.prepare_cached(WRITE)?.execute((
            seen,
            indexed_row,
            next_row,
            waiting,
            sum,
            wal_generation,
            salt,
            is_open,
            seal,
        ))?;
        Ok(())
    }

    fn numbers(&self) -> [i64; NUMBERS] {
        let SetDigest { count, sum } = self.waiting;
        let is_open = i64::from(self.is_open);
        [
            millis(self.seen),
            self.indexed_row,
            self.next_row,
            count,
            sum,
            self.wal_generation,
            self.salt,
            is_open,
        ]
    }

    fn from_numbers(numbers: [i64; NUMBERS]) -> Self {
        let [seen, indexed_row, next_row, count, sum, wal_generation, salt, is_open] = numbers;
        Self {
            seen: Timestamp::from_millis(u64::try_from(seen).unwrap_or(0)),
            indexed_row,
            next_row,
            waiting: SetDigest { count, sum },
            wal_generation,
            salt,
            is_open: is_open != 0,
        }
    }
}

/// CRC-32 of all numbers, eight bytes each. Stored as bytes: no flipped bit turns them into a number or null.
fn seal_of(numbers: &[i64; NUMBERS]) -> [u8; 4] {
    let mut hasher = crc32fast::Hasher::new();
    numbers.iter().for_each(|number| hasher.update(&number.to_le_bytes()));
    hasher.finalize().to_le_bytes()
}

#[cfg(test)]
mod tests;
