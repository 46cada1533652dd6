//! [`KilledJournal`]: what a killed process leaves of its journal, and what a machine that loses its power leaves of it.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use hapax_client::{Client, Key, OpenCallState};

use super::caller;

/// The file of a journal.
const LOG: &str = "calls.log";
/// Where its head says how much of it was synced, as eight bytes, the lowest first.
const SYNCED_AT: usize = 12;

/// The journal of a process that was killed.
pub(super) struct KilledJournal {
    folder: PathBuf,
}

impl KilledJournal {
    pub(super) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    fn log(&self) -> PathBuf {
        caller::journal_path(&self.folder).join(LOG)
    }

    /// Its bytes; none when there is no file yet.
    pub(super) fn bytes(&self) -> Result<Option<Vec<u8>>> {
        match fs::read(self.log()) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).context("the journal cannot be read"),
        }
    }

    /// Cuts off what was never synced, as the loss of power may.
    pub(super) fn lose_unsynced(&self) -> Result<()> {
        let Some(bytes) = self.bytes()? else { return Ok(()) };
        let synced =
            bytes.get(SYNCED_AT..).and_then(<[u8]>::first_chunk).context("the journal has no head")?;
        Ok(File::options().write(true).open(self.log())?.set_len(u64::from_le_bytes(*synced))?)
    }

    /// Brings back an earlier state, as if nothing of what was written since had reached the disk.
    pub(super) fn restore(&self, bytes: Option<&[u8]>) -> Result<()> {
        match bytes {
            Some(bytes) => Ok(fs::write(self.log(), bytes)?),
            None if self.log().exists() => Ok(fs::remove_file(self.log())?),
            None => Ok(()),
        }
    }

    /// Removes its open calls.
    pub(super) async fn forget_open(&self) -> Result<()> {
        let client = caller::client(&self.folder)?;
        for call in client.open_calls().iter().filter(|call| call.state == OpenCallState::Open) {
            client.forget(call).await?;
        }
        Ok(())
    }

    /// The keys of the calls that the next process will find. Reads a copy, so that the next process recovers the file.
    pub(super) fn open_keys(&self) -> Result<HashSet<Key>> {
        let Some(bytes) = self.bytes()? else { return Ok(HashSet::new()) };
        let copy = tempfile::tempdir()?;
        fs::write(copy.path().join(LOG), bytes)?;
        let url = format!("file:{}", copy.path().display());
        let client = Client::builder().existing_journal(url).build()?;
        Ok(client.open_calls().into_iter().map(|call| call.key).collect())
    }
}
