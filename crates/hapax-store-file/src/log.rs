//! [`Log`]: brings the engine's log to the disk.
//!
//! The engine writes a commit to its log and leaves the syncing to this file: what it holds is durable in the journal
//! already, and only when the log is as well may the journal be written over.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use rusqlite::ffi;

use crate::config::Sync;
use crate::error::{Failure, Phase};

/// One writer's way to the disk.
#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
    sync: Sync,
    /// The engine makes the log with its first commit and keeps the file as long as a connection is open.
    file: Option<File>,
}

impl Log {
    pub(crate) fn new(path: PathBuf, sync: Sync) -> Self {
        Self { path, sync, file: None }
    }

    /// Brings all commits to the disk before this returns.
    pub(crate) fn bring(&mut self) -> Result<(), Failure> {
        if self.sync == Sync::Off {
            return Ok(());
        }
        self.sync_file().map_err(|error| {
            let code = ffi::Error::new(ffi::SQLITE_IOERR_FSYNC);
            Failure::at(Phase::Commit)(rusqlite::Error::SqliteFailure(code, Some(error.to_string())))
        })
    }

    fn sync_file(&mut self) -> io::Result<()> {
        let file = match self.file.take() {
            Some(file) => file,
            None => File::open(&self.path)?,
        };
        self.file.insert(file).sync_data()
    }
}

#[cfg(test)]
mod tests {
    use hapax_core::StoreErrorKind;

    use super::*;

    #[test]
    fn d_04_a_commit_that_is_not_durable_stops_the_store() {
        let dir = tempfile::tempdir().unwrap();
        // There is no file to sync.
        let failure = Log::new(dir.path().join("log"), Sync::Full).bring().unwrap_err();
        assert_eq!((failure.judge().kind, failure.judge().fatal), (StoreErrorKind::Unknown, true));
    }

    #[test]
    fn nothing_is_synced_where_nothing_should_be() {
        Log::new("nowhere".into(), Sync::Off).bring().unwrap();
    }
}
