//! fjall, a log-structured tree: one keyspace, one atomic batch per commit.

use std::path::Path;

use anyhow::Result;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::{Id, Layout, Stored, Write, join, split};

/// One keyspace by key.
pub struct FjallKeyspace {
    database: Database,
    records: Keyspace,
}

impl FjallKeyspace {
    /// Opens or creates the database in `dir`.
    pub fn open(dir: &Path) -> Result<Self> {
        let database = Database::builder(dir.join("fjall")).cache_size(128 << 20).open()?;
        let records = database.keyspace("records", KeyspaceCreateOptions::default)?;
        Ok(Self { database, records })
    }
}

impl Layout for FjallKeyspace {
    fn apply(&mut self, batch: &[Write]) -> Result<()> {
        let mut commit = self.database.batch().durability(Some(PersistMode::SyncData));
        for write in batch {
            std::hint::black_box(self.records.contains_key(write.id)?);
            commit.insert(&self.records, write.id, join(write));
        }
        Ok(commit.commit()?)
    }

    fn read(&mut self, id: &Id) -> Result<Option<Stored>> {
        self.records.get(id)?.map(|value| split(&value)).transpose()
    }
}
