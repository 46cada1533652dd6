//! The upper bound: an append-only log and a map in memory. It is no store, since the map never shrinks and opening reads
//! everything; it shows the limit of the disk.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use anyhow::Result;

use super::{Id, Layout, Stored, Write, join, split};

/// Bytes before each value in the log: id, length, checksum.
const FRAME_HEAD: usize = 32 + 4 + 4;

/// Log and map.
#[derive(Debug)]
pub struct LogLayout {
    log: File,
    values: HashMap<Id, Vec<u8>>,
}

impl LogLayout {
    /// Opens or creates the log in `dir`; whatever follows the last whole frame is cut off.
    pub fn open(dir: &Path) -> Result<Self> {
        let path = dir.join("records.log");
        let mut log = File::options().create(true).read(true).append(true).open(&path)?;
        let bytes = std::fs::read(&path)?;
        let mut values = HashMap::new();
        let mut rest = &bytes[..];
        while let Some((id, value, after)) = frame(rest) {
            values.insert(id, value.to_vec());
            rest = after;
        }
        if !rest.is_empty() {
            log.set_len((bytes.len() - rest.len()) as u64)?;
        }
        log.flush()?;
        Ok(Self { log, values })
    }
}

impl Layout for LogLayout {
    fn apply(&mut self, batch: &[Write]) -> Result<()> {
        let mut frames = Vec::new();
        let mut changes = Vec::with_capacity(batch.len());
        for write in batch {
            std::hint::black_box(self.values.contains_key(&write.id));
            let value = join(write);
            frames.extend_from_slice(&write.id);
            frames.extend_from_slice(&(value.len() as u32).to_le_bytes());
            frames.extend_from_slice(&crc32fast::hash(&value).to_le_bytes());
            frames.extend_from_slice(&value);
            changes.push((write.id, value));
        }
        self.log.write_all(&frames)?;
        self.log.sync_data()?;
        self.values.extend(changes);
        Ok(())
    }

    fn read(&mut self, id: &Id) -> Result<Option<Stored>> {
        self.values.get(id).map(|value| split(value)).transpose()
    }
}

/// The first whole frame of `bytes`: its id, its value and what follows.
fn frame(bytes: &[u8]) -> Option<(Id, &[u8], &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<FRAME_HEAD>()?;
    let (id, head) = head.split_first_chunk::<32>()?;
    let (length, checksum) = head.split_first_chunk::<4>()?;
    let (value, after) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    (crc32fast::hash(value).to_le_bytes() == *checksum).then_some((*id, value, after))
}
