//! [`SqliteLog`]: fsyncs SQLite's own log, `hapax.db-wal`.
//!
//! SQLite appends a commit to its log without a sync (`synchronous = NORMAL`). The store syncs the log itself, after which the
//! store's write-ahead log may be overwritten.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use rusqlite::ffi;

use crate::config::SyncMode;
use crate::error::{Failure, Phase};

/// SQLite's log, as the writer syncs it.
#[derive(Debug)]
pub(crate) struct SqliteLog {
    path: PathBuf,
    sync_mode: SyncMode,
    /// SQLite creates the log with its first commit and keeps the file as long as a connection is open.
    file: Option<File>,
}

impl SqliteLog {
    pub(crate) fn new(path: PathBuf, sync_mode: SyncMode) -> Self {
        Self { path, sync_mode, file: None }
    }

    /// Fsyncs all commits.
    pub(crate) fn sync(&mut self) -> Result<(), Failure> {
        if self.sync_mode == SyncMode::Off {
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
        let failure = SqliteLog::new(dir.path().join("log"), SyncMode::Full).sync().unwrap_err();
        assert_eq!((failure.classify().kind, failure.classify().fatal), (StoreErrorKind::Unknown, true));
    }

    #[test]
    fn sync_off_syncs_nothing() {
        SqliteLog::new("nowhere".into(), SyncMode::Off).sync().unwrap();
    }
}
