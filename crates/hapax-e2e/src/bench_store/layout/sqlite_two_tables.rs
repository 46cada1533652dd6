//! SQLite with random access kept small: records by row number with a unique index on a 16-byte hash, outcomes
//! appended to a second table.
//!
//! Rows of both tables are written one after the other, so that a batch fills pages instead of touching one page
//! per key; only the narrow index is hit at random.

use std::path::Path;

use anyhow::Result;
use rusqlite::{Connection, OptionalExtension, params};

use super::{Id, Layout, Stored, Write};

/// Pages of the log before it is copied into the database: 64 MiB, so that hot index pages are copied once for
/// many commits.
const CHECKPOINT_PAGES: u32 = 16_384;

/// Cache in KiB (negative, by SQLite's convention): holds the index of a few million records.
const CACHE_KIB: i32 = -131_072;

/// Small record table and appended outcomes.
#[derive(Debug)]
pub struct SqliteTwoTables {
    connection: Connection,
}

impl SqliteTwoTables {
    /// Opens or creates the database in `dir`.
    pub fn open(dir: &Path) -> Result<Self> {
        let connection = Connection::open(dir.join("pair.db"))?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "full")?;
        connection.pragma_update(None, "cache_size", CACHE_KIB)?;
        connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
        connection.execute_batch(
            "CREATE TABLE IF NOT EXISTS records (
                 row INTEGER PRIMARY KEY, hash BLOB NOT NULL, record BLOB NOT NULL, outcome INTEGER);
             CREATE UNIQUE INDEX IF NOT EXISTS records_by_hash ON records (hash);
             CREATE TABLE IF NOT EXISTS outcomes (row INTEGER PRIMARY KEY, body BLOB NOT NULL);",
        )?;
        Ok(Self { connection })
    }
}

impl Layout for SqliteTwoTables {
    fn apply(&mut self, batch: &[Write]) -> Result<()> {
        let transaction = self.connection.transaction()?;
        {
            let mut append = transaction.prepare_cached("INSERT INTO outcomes (body) VALUES (?1)")?;
            let mut upsert = transaction.prepare_cached(
                "INSERT INTO records (hash, record, outcome) VALUES (?1, ?2, ?3)
                 ON CONFLICT (hash) DO UPDATE SET record = excluded.record, outcome = excluded.outcome",
            )?;
            for write in batch {
                let outcome = match &write.outcome {
                    Some(body) => Some(append.insert([&body[..]])?),
                    None => None,
                };
                upsert.execute(params![hash(&write.id), &write.record[..], outcome])?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn read(&mut self, id: &Id) -> Result<Option<Stored>> {
        Ok(self
            .connection
            .prepare_cached(
                "SELECT record, body FROM records LEFT JOIN outcomes ON outcomes.row = records.outcome
                 WHERE hash = ?1",
            )?
            .query_row([hash(id)], |row| Ok(Stored { record: row.get(0)?, outcome: row.get(1)? }))
            .optional()?)
    }
}

/// Sixteen random bytes identify a record as well as thirty-two.
fn hash(id: &Id) -> &[u8] {
    &id[16..]
}
