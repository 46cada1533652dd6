//! redb with the design of the two-table SQLite: a small index by key, values in sequence.

use std::path::Path;

use anyhow::{Context, Result};
use redb::{Database, Durability, ReadableDatabase, ReadableTable, TableDefinition};

use super::{Id, Layout, Stored, Write, join, split};

/// Where the current value of a record is.
const INDEX: TableDefinition<'_, [u8; 16], u64> = TableDefinition::new("index");
/// Values in the order in which they were written.
const VALUES: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("values");

/// Index and sequential values in one redb file.
#[derive(Debug)]
pub struct RedbTwoTables {
    database: Database,
    next: u64,
}

impl RedbTwoTables {
    /// Opens or creates the database in `dir`.
    pub fn open(dir: &Path) -> Result<Self> {
        let database = Database::builder().set_cache_size(128 << 20).create(dir.join("pair.redb"))?;
        let transaction = database.begin_write()?;
        transaction.open_table(INDEX)?;
        let next = transaction.open_table(VALUES)?.last()?.map_or(0, |(row, _)| row.value() + 1);
        transaction.commit()?;
        Ok(Self { database, next })
    }
}

impl Layout for RedbTwoTables {
    fn apply(&mut self, batch: &[Write]) -> Result<()> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(Durability::Immediate)?;
        {
            let mut index = transaction.open_table(INDEX)?;
            let mut values = transaction.open_table(VALUES)?;
            for write in batch {
                let before = index.insert(hash(&write.id)?, self.next)?.map(|row| row.value());
                if let Some(row) = before {
                    values.remove(row)?;
                }
                values.insert(self.next, &join(write)[..])?;
                self.next += 1;
            }
        }
        Ok(transaction.commit()?)
    }

    fn read(&mut self, id: &Id) -> Result<Option<Stored>> {
        let transaction = self.database.begin_read()?;
        let Some(row) = transaction.open_table(INDEX)?.get(hash(id)?)? else {
            return Ok(None);
        };
        let values = transaction.open_table(VALUES)?;
        let value = values.get(row.value())?.context("the index names a missing value")?;
        Ok(Some(split(value.value())?))
    }
}

fn hash(id: &Id) -> Result<&[u8; 16]> {
    id.last_chunk().context("an id has at least sixteen bytes")
}
