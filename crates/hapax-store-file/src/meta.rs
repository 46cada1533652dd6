//! [`Meta`]: what the store must remember about itself, in one row with a checksum.

use hapax_core::Timestamp;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ffi};

use crate::journal::Generation;
use crate::leaf::IndexEntry;
use crate::row::millis;

const READ: &str = "SELECT seen_ms, indexed_row, next_row, waiting, waiting_sum, journal, salt, is_open, seal \
                    FROM meta WHERE rowid = 1";
const WRITE: &str = "INSERT OR REPLACE INTO meta \
                     (rowid, seen_ms, indexed_row, next_row, waiting, waiting_sum, journal, salt, is_open, seal) \
                     VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";

/// What stands in place of the checksum where the index is to be made anew, from the records.
const ANEW: &[u8] = b"anew";

/// How many numbers there are in the row.
const NUMBERS: usize = 8;

/// What the store must remember about itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Meta {
    /// No decision was ever made at a later time than this.
    pub(crate) seen: Timestamp,
    /// Every record up to this row is in the index.
    pub(crate) indexed_row: i64,
    /// No record ever had this row or a later one.
    pub(crate) next_row: i64,
    /// The records after `indexed_row`.
    pub(crate) waiting: Tally,
    /// Everything up to this generation of the journal is in the database.
    pub(crate) journal: i64,
    /// What frames of the next generation are known by.
    pub(crate) salt: i64,
    /// Whether a process owns the store, or did when it died: then the journal must be there.
    pub(crate) is_open: bool,
}

/// A set of entries, as far as it takes to notice that one is missing or another than it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Tally {
    count: i64,
    sum: i64,
}

/// What the row holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stored {
    Sealed(Meta),
    /// A person asked for the index to be made anew.
    Anew(Meta),
    Damaged,
}

impl Tally {
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
    /// That of a store without records.
    pub(crate) fn new(salt: i64) -> Self {
        Self {
            seen: Timestamp::from_millis(0),
            indexed_row: 0,
            next_row: 1,
            waiting: Tally::default(),
            journal: 0,
            salt,
            is_open: false,
        }
    }

    /// The generation of the journal that comes after what is in the database.
    pub(crate) fn next_generation(&self) -> Generation {
        Generation { number: self.journal.unsigned_abs() + 1, salt: self.salt }
    }

    pub(crate) fn read(connection: &Connection) -> rusqlite::Result<Stored> {
        let mut statement = connection.prepare_cached(READ)?;
        let mut rows = statement.query([])?;
        let Some(row) = rows.next()? else {
            return Ok(Stored::Damaged);
        };
        let mut numbers = [0; NUMBERS];
        for (at, number) in numbers.iter_mut().enumerate() {
            match row.get_ref(at)? {
                ValueRef::Integer(stored) => *number = stored,
                _ => return Ok(Stored::Damaged),
            }
        }
        let meta = Self::from_numbers(numbers);
        Ok(match row.get_ref(NUMBERS)? {
            ValueRef::Blob(seal) if seal == seal_of(&numbers) => Stored::Sealed(meta),
            ValueRef::Text(ANEW) => Stored::Anew(meta),
            _ => Stored::Damaged,
        })
    }

    /// The row that a process wrote; fails as a damaged page of the engine does.
    pub(crate) fn read_sealed(connection: &Connection) -> rusqlite::Result<Self> {
        match Self::read(connection)? {
            Stored::Sealed(meta) => Ok(meta),
            Stored::Anew(_) | Stored::Damaged => {
                let why = "what the store remembers about itself is damaged".to_owned();
                Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_CORRUPT), Some(why)))
            }
        }
    }

    pub(crate) fn write(&self, connection: &Connection) -> rusqlite::Result<()> {
        let [seen, indexed_row, next_row, waiting, sum, journal, salt, is_open] = self.numbers();
        let seal = seal_of(&self.numbers());
        connection.prepare_cached(WRITE)?.execute((
            seen,
            indexed_row,
            next_row,
            waiting,
            sum,
            journal,
            salt,
            is_open,
            seal,
        ))?;
        Ok(())
    }

    fn numbers(&self) -> [i64; NUMBERS] {
        let Tally { count, sum } = self.waiting;
        let is_open = i64::from(self.is_open);
        [millis(self.seen), self.indexed_row, self.next_row, count, sum, self.journal, self.salt, is_open]
    }

    fn from_numbers(numbers: [i64; NUMBERS]) -> Self {
        let [seen, indexed_row, next_row, count, sum, journal, salt, is_open] = numbers;
        Self {
            seen: Timestamp::from_millis(u64::try_from(seen).unwrap_or(0)),
            indexed_row,
            next_row,
            waiting: Tally { count, sum },
            journal,
            salt,
            is_open: is_open != 0,
        }
    }
}

/// CRC-32 of all numbers, eight bytes each. Kept as bytes: no flipped bit makes a number or nothing of them.
fn seal_of(numbers: &[i64; NUMBERS]) -> [u8; 4] {
    let mut hasher = crc32fast::Hasher::new();
    numbers.iter().for_each(|number| hasher.update(&number.to_le_bytes()));
    hasher.finalize().to_le_bytes()
}

#[cfg(test)]
mod tests;
