//! [`Head`]: the start of the file. It says how much of the file was on disk, so that damage there is no torn write.

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use crate::journal::JournalError;

/// The kind and version of the file.
const MAGIC: [u8; 8] = *b"hapaxcj2";
/// Where the seed begins, the length that was synced, and the checksum of both.
const SEED: usize = MAGIC.len();
const SYNCED: usize = SEED + 4;
const CHECKSUM: usize = SYNCED + 8;
/// Its length. It lies in one sector, which a disk writes as a whole.
pub(super) const LENGTH: usize = CHECKSUM + 4;

/// The head of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Head {
    /// Where the checksums of the frames start from.
    pub(super) seed: u32,
    /// The length of the file that was on disk when the head was written.
    pub(super) synced: u64,
}

impl Head {
    /// The head of a file; `None` for an empty one. A file has its name only once its head is on disk, so that a part of a
    /// head is what damage has left, and so is a file that is shorter than its head says.
    pub(super) fn read(bytes: &[u8], path: &Path) -> Result<Option<Self>, JournalError> {
        if bytes.is_empty() {
            return Ok(None);
        }
        if !bytes.starts_with(&MAGIC[..bytes.len().min(MAGIC.len())]) {
            return Err(JournalError::Foreign { path: path.to_owned() });
        }
        let damaged = |at| JournalError::Damaged { path: path.to_owned(), at };
        let head = Self::decode(bytes).ok_or_else(|| damaged(bytes.len().min(SEED) as u64))?;
        if head.synced > bytes.len() as u64 {
            return Err(damaged(bytes.len() as u64));
        }
        Ok(Some(head))
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let seed = u32::from_le_bytes(*bytes.get(SEED..)?.first_chunk()?);
        let synced = u64::from_le_bytes(*bytes.get(SYNCED..)?.first_chunk()?);
        let head = Self { seed, synced };
        (head.encode() == *bytes.first_chunk()?).then_some(head)
    }

    pub(super) fn encode(self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[..SEED].copy_from_slice(&MAGIC);
        bytes[SEED..SYNCED].copy_from_slice(&self.seed.to_le_bytes());
        bytes[SYNCED..CHECKSUM].copy_from_slice(&self.synced.to_le_bytes());
        let checksum = crc32fast::hash(&bytes[..CHECKSUM]);
        bytes[CHECKSUM..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Overwrites the head of a file that was not opened for appending.
    pub(super) fn write(self, mut file: &File) -> io::Result<()> {
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&self.encode())
    }
}

#[cfg(test)]
mod tests;
