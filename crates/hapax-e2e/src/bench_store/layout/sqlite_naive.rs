//! The obvious SQLite design: one `WITHOUT ROWID` table by key, one upsert per write.
//!
//! This is the baseline that the file store is measured against. Random keys make every upsert move a 700-byte
//! row on its own page, and every such page is logged whole.

use std::path::Path;

use anyhow::Result;
use rusqlite::{Connection, OptionalExtension, params};

use super::{Id, Layout, Stored, Write};

/// The upsert, shared with the raw driver loop so that both do the same work.
pub const UPSERT: &str = "INSERT INTO records (id, record, outcome) VALUES (?1, ?2, ?3)
     ON CONFLICT (id) DO UPDATE SET record = excluded.record, outcome = excluded.outcome";

/// One table by key.
#[derive(Debug)]
pub struct SqliteNaive {
    connection: Connection,
}

impl SqliteNaive {
    /// Opens or creates the database in `dir`.
    pub fn open(dir: &Path) -> Result<Self> {
        Ok(Self { connection: connect(dir)? })
    }
}

/// A connection to the one-table database: write-ahead log, one fsync per commit, otherwise the defaults.
pub fn connect(dir: &Path) -> Result<Connection> {
    let connection = Connection::open(dir.join("naive.db"))?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.execute_batch(
        "CREATE TABLE IF NOT EXISTS records (
             id BLOB PRIMARY KEY, record BLOB NOT NULL, outcome BLOB) WITHOUT ROWID",
    )?;
    Ok(connection)
}

impl Layout for SqliteNaive {
    fn apply(&mut self, batch: &[Write]) -> Result<()> {
        let transaction = self.connection.transaction()?;
        {
            let mut upsert = transaction.prepare_cached(UPSERT)?;
            for write in batch {
                upsert.execute(params![write.id, &write.record[..], write.outcome.as_deref()])?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn read(&mut self, id: &Id) -> Result<Option<Stored>> {
        Ok(self
            .connection
            .prepare_cached("SELECT record, outcome FROM records WHERE id = ?1")?
            .query_row([id], |row| Ok(Stored { record: row.get(0)?, outcome: row.get(1)? }))
            .optional()?)
    }
}
