//! Commits, after which the write-ahead log starts over, and the orderly close of a store.

use std::sync::atomic::Ordering;
use std::time::Instant;

use super::{AttemptError, WalUse, Writer};
use crate::clock;
use crate::error::{Failure, Phase};
use crate::memtable::Records;
use crate::meta::Meta;
use crate::schema;
use crate::wal::Generation;

/// Whether a commit flushes index entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum IndexFlush {
    /// Those that are due; all of them when the store closes.
    Due,
    /// None.
    Skip,
}

impl Writer {
    /// Commits the open transaction, if there is one.
    pub(super) fn commit(&mut self) -> Result<(), AttemptError> {
        if self.shared.is_stopped() {
            return Err(AttemptError::AlreadyStopped(self.shared.stop_reason()));
        }
        if self.open_since.is_none() {
            return Ok(());
        }
        let flushed = self.attempt(|writer| writer.commit_with(IndexFlush::Due));
        let result = match flushed {
            // The index may have failed, which must not block the commit.
            Err(AttemptError::Failed(failure)) if failure.classify().separable => {
                tracing::warn!(error = %failure, "file store cannot write to its index; check for room and for damage");
                self.attempt(|writer| writer.commit_with(IndexFlush::Skip))
            }
            result => result,
        };
        self.commit_failed_at = result.is_err().then(Instant::now);
        if let Err(AttemptError::Failed(failure)) = &result {
            tracing::warn!(error = %failure, "file store cannot commit; acknowledged changes are in its write-ahead log");
        }
        result
    }

    /// Commits the open transaction durably; only then is the write-ahead log overwritten.
    pub(super) fn commit_with(&mut self, flush: IndexFlush) -> Result<(), Failure> {
        self.write_records(Records::All)?;
        if flush == IndexFlush::Due {
            self.memtable.flush(&self.connection)?;
        }
        // A sweep is not in the write-ahead log. If there is nothing else, the generation goes on.
        if self.wal.length() == 0 {
            self.commit_durably(|_| ())?
        } else {
            self.commit_generation()?
        }
        // Unknown counts as none.
        self.room = self.room.map(|_| schema::room(&self.connection).unwrap_or(0));
        self.shared.uncommitted.store(false, Ordering::Release);
        Ok(())
    }

    /// Commits the open transaction with the current generation of the write-ahead log, and begins the next one.
    pub(super) fn commit_generation(&mut self) -> Result<(), Failure> {
        self.wal.advance_header()?;
        let number = self.wal.generation().number;
        let next = Generation { number: number + 1, salt: schema::random(&self.connection)? };
        self.commit_durably(|meta| {
            meta.wal_generation = i64::try_from(number).expect("generations are far below 2^63");
            meta.salt = next.salt;
        })?;
        self.wal.begin_generation(next);
        Ok(())
    }

    /// Commits the open transaction together with `meta`, and fsyncs it.
    pub(super) fn commit_durably(&mut self, change: impl FnOnce(&mut Meta)) -> Result<(), Failure> {
        let mut meta = Meta { seen: clock::cover(self.meta.seen, self.latest), ..self.meta };
        self.memtable.note(&mut meta);
        change(&mut meta);
        meta.write(&self.connection)?;
        let commit = self.connection.prepare_cached("COMMIT").and_then(|mut commit| commit.execute([]));
        commit.map_err(Failure::at(Phase::Commit))?;
        self.sqlite_log.sync()?;
        self.meta = meta;
        self.memtable.commit();
        self.open_since = None;
        Ok(())
    }

    /// Closes the store in an orderly way. SQLite checkpoints its log when the last connection closes.
    pub(super) fn close(mut self) {
        if self.shared.is_stopped() || self.commit().is_err() {
            return;
        }
        if let Some(path) = self.opened_files.replaced() {
            tracing::error!(path = %path.display(), "file store not marked as closed: its files were removed or replaced");
            return;
        }
        let mut closed = self.attempt(|writer| writer.mark_closed(IndexFlush::Due));
        if let Err(AttemptError::Failed(failure)) = &closed {
            tracing::warn!(error = %failure, "file store closed with an incomplete index; the next start completes it");
            closed = self.attempt(|writer| writer.mark_closed(IndexFlush::Skip));
        }
        if closed.is_err() {
            tracing::warn!("file store not marked as closed; the next start recovers as after a crash");
        } else if let Err(error) = self.wal.remove_file() {
            tracing::warn!(%error, "file store closed but cannot remove its write-ahead log, which is not needed");
        }
    }

    /// Stores that no process has the store open, so that the write-ahead log is not needed.
    fn mark_closed(&mut self, flush: IndexFlush) -> Result<(), Failure> {
        self.in_transaction(WalUse::Skip, self.latest, |_| Ok(()))?;
        if flush == IndexFlush::Due {
            self.memtable.flush_all(&self.connection)?;
        }
        let now = self.clock.now();
        self.commit_durably(|meta| {
            meta.is_open = false;
            // The stored time is ahead of the clock while the store is open.
            meta.seen = meta.seen.min(now);
        })
    }
}
