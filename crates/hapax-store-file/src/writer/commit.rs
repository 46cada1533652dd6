//! The ends of transactions: a commit, after which the journal starts over, and the orderly end of a store.

use std::sync::atomic::Ordering;
use std::time::Instant;

use super::{Noted, Stop, Writer};
use crate::clock;
use crate::error::{Failure, Phase};
use crate::journal::Generation;
use crate::memtable::Records;
use crate::meta::Meta;
use crate::schema;

/// What becomes of entries for the index with a commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Entries {
    /// Those that are due are written, at the end of a store all of them.
    Due,
    /// They wait.
    Waiting,
}

impl Writer {
    /// Commits what waits, if anything does, so that others see it and the journal starts over.
    pub(super) fn commit(&mut self) -> Result<(), Stop> {
        if self.shared.is_stopped() {
            return Err(Stop::Earlier(self.shared.refusal()));
        }
        if self.open.is_none() {
            return Ok(());
        }
        let placed = self.attempt(|writer| writer.commit_with(Entries::Due));
        let done = match placed {
            // It may have been the index. What cannot be written there must not keep anything from being committed.
            Err(Stop::Failed(failure)) if failure.judge().separable => {
                tracing::warn!(error = %failure, "file store cannot write to its index; look for room, or for damage");
                self.attempt(|writer| writer.commit_with(Entries::Waiting))
            }
            done => done,
        };
        self.failed = done.is_err().then(Instant::now);
        if let Err(Stop::Failed(failure)) = &done {
            tracing::warn!(error = %failure, "file store cannot commit; what it acknowledged is in its journal");
        }
        done
    }

    /// Commits the open transaction and brings it to the disk; only then is the journal written over.
    pub(super) fn commit_with(&mut self, entries: Entries) -> Result<(), Failure> {
        self.write_records(Records::All)?;
        if entries == Entries::Due {
            self.memtable.flush(&self.connection)?;
        }
        // A sweep is in no journal. Where there is nothing else, the generation goes on.
        if self.journal.length() == 0 {
            self.end_durably(|_| ())?
        } else {
            self.end_generation()?
        }
        // Where it cannot be told, there is none.
        self.room = self.room.map(|_| schema::room(&self.connection).unwrap_or(0));
        self.shared.uncommitted.store(false, Ordering::Release);
        Ok(())
    }

    /// Commits the open transaction as all that the generation of the journal has, and begins the next one.
    pub(super) fn end_generation(&mut self) -> Result<(), Failure> {
        self.journal.mark_ahead()?;
        let number = self.journal.generation().number;
        let next = Generation { number: number + 1, salt: schema::random(&self.connection)? };
        self.end_durably(|meta| {
            meta.journal = i64::try_from(number).expect("no journal gets as far");
            meta.salt = next.salt;
        })?;
        self.journal.start_over(next);
        Ok(())
    }

    /// Commits the open transaction with what is to be remembered of it, and brings it to the disk.
    pub(super) fn end_durably(&mut self, change: impl FnOnce(&mut Meta)) -> Result<(), Failure> {
        let mut meta = Meta { seen: clock::cover(self.meta.seen, self.latest), ..self.meta };
        self.memtable.note(&mut meta);
        change(&mut meta);
        meta.write(&self.connection)?;
        let commit = self.connection.prepare_cached("COMMIT").and_then(|mut commit| commit.execute([]));
        commit.map_err(Failure::at(Phase::Commit))?;
        self.log.bring()?;
        self.meta = meta;
        self.memtable.commit();
        self.open = None;
        Ok(())
    }

    /// An orderly end. The last connection to close moves the log into the database by itself.
    pub(super) fn close(mut self) {
        if self.shared.is_stopped() || self.commit().is_err() {
            return;
        }
        if let Some(path) = self.footing.lost() {
            tracing::error!(path = %path.display(), "file store closed without an end: its files were removed or replaced");
            return;
        }
        let mut ended = self.attempt(|writer| writer.end_life(Entries::Due));
        if let Err(Stop::Failed(failure)) = &ended {
            tracing::warn!(error = %failure, "file store closed without completing its index; the next start does that");
            ended = self.attempt(|writer| writer.end_life(Entries::Waiting));
        }
        if ended.is_err() {
            tracing::warn!("file store closed without an end; its next start takes it for one after a crash");
        } else if let Err(error) = self.journal.end() {
            tracing::warn!(%error, "file store closed without removing its journal, of which nothing is needed");
        }
    }

    /// Notes that nothing is open any more, and that the journal is not needed.
    fn end_life(&mut self, entries: Entries) -> Result<(), Failure> {
        self.work(Noted::Nowhere, self.latest, |_| Ok(()))?;
        if entries == Entries::Due {
            self.memtable.flush_all(&self.connection)?;
        }
        let now = self.clock.now();
        self.end_durably(|meta| {
            meta.is_open = false;
            // Not ahead of the clock any more.
            meta.seen = meta.seen.min(now);
        })
    }
}
