//! The layouts that the benchmark and the crash proof compare: one small trait, five ways to keep records on a disk.
//!
//! A layout is not a store. It has no leases, no fences and no list: just enough to carry the file store's two
//! writes, a claim and a completion, in the best form for its engine. Every layout looks a key up before it
//! writes, because a claim must.

mod log;
pub mod sqlite_naive;
mod sqlite_two_tables;

#[cfg(feature = "engines")]
mod fjall_keyspace;
#[cfg(feature = "engines")]
mod redb_two_tables;

use std::path::Path;

use anyhow::Result;
use bytes::Bytes;

pub use self::log::LogLayout;
pub use self::sqlite_naive::SqliteNaive;
pub use self::sqlite_two_tables::SqliteTwoTables;

#[cfg(feature = "engines")]
pub use self::{fjall_keyspace::FjallKeyspace, redb_two_tables::RedbTwoTables};

/// The name of a record: random, like the hash of a scoped key.
pub type Id = [u8; 32];

/// One claim, completion or release.
#[derive(Clone, Debug)]
pub struct Write {
    /// The record.
    pub id: Id,
    /// The small part that every write replaces: state, fence, fingerprint, times.
    pub record: Bytes,
    /// The outcome, if the operation has one.
    pub outcome: Option<Bytes>,
}

/// The stored state of one record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stored {
    /// The small part as it was last written.
    pub record: Vec<u8>,
    /// The outcome that was written with it.
    pub outcome: Option<Vec<u8>>,
}

/// A way to keep records on a disk.
pub trait Layout: Send {
    /// Applies a batch of writes in order, as one step that is durable when it returns.
    fn apply(&mut self, batch: &[Write]) -> Result<()>;

    /// The stored state of `id`.
    fn read(&mut self, id: &Id) -> Result<Option<Stored>>;
}

/// Which layout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// [`SqliteNaive`].
    SqliteNaive,
    /// [`SqliteTwoTables`].
    SqliteTwoTables,
    /// Small index table and sequential records in redb.
    #[cfg(feature = "engines")]
    Redb,
    /// One keyspace in fjall.
    #[cfg(feature = "engines")]
    Fjall,
    /// [`LogLayout`].
    Log,
}

impl Kind {
    /// Every layout of this build; redb and fjall come with the feature `engines`.
    pub const ALL: &[Self] = &[
        Self::SqliteNaive,
        Self::SqliteTwoTables,
        #[cfg(feature = "engines")]
        Self::Redb,
        #[cfg(feature = "engines")]
        Self::Fjall,
        Self::Log,
    ];

    /// The name used in tables and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SqliteNaive => "sqlite-naive",
            Self::SqliteTwoTables => "sqlite-two-tables",
            #[cfg(feature = "engines")]
            Self::Redb => "redb",
            #[cfg(feature = "engines")]
            Self::Fjall => "fjall",
            Self::Log => "log-and-map",
        }
    }

    /// Opens the layout in `dir`, which exists, with the files of an earlier process.
    pub fn open(self, dir: &Path) -> Result<Box<dyn Layout>> {
        Ok(match self {
            Self::SqliteNaive => Box::new(SqliteNaive::open(dir)?),
            Self::SqliteTwoTables => Box::new(SqliteTwoTables::open(dir)?),
            #[cfg(feature = "engines")]
            Self::Redb => Box::new(RedbTwoTables::open(dir)?),
            #[cfg(feature = "engines")]
            Self::Fjall => Box::new(FjallKeyspace::open(dir)?),
            Self::Log => Box::new(LogLayout::open(dir)?),
        })
    }
}

/// A record and its outcome as one value, for layouts that keep them together.
fn join(write: &Write) -> Vec<u8> {
    let outcome = write.outcome.as_deref();
    let mut value = Vec::with_capacity(5 + write.record.len() + outcome.map_or(0, <[u8]>::len));
    value.extend_from_slice(&(write.record.len() as u32).to_le_bytes());
    value.push(outcome.is_some().into());
    value.extend_from_slice(&write.record);
    value.extend_from_slice(outcome.unwrap_or_default());
    value
}

/// The inverse of [`join`].
fn split(value: &[u8]) -> Result<Stored> {
    let damaged = || anyhow::anyhow!("a stored value of {} bytes is damaged", value.len());
    let (head, rest) = value.split_first_chunk::<5>().ok_or_else(damaged)?;
    let [a, b, c, d, has_outcome] = *head;
    let (record, outcome) =
        rest.split_at_checked(u32::from_le_bytes([a, b, c, d]) as usize).ok_or_else(damaged)?;
    Ok(Stored { record: record.to_vec(), outcome: (has_outcome == 1).then(|| outcome.to_vec()) })
}
