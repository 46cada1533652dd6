//! The writer thread. It takes the queued operations as a batch, applies them, fsyncs the batch in the write-ahead log,
//! replies, and then writes the records to the database. Concurrent callers share one fsync (group commit), a lone caller
//! does not wait for others, and callers do not wait for the database.
//!
//! The database transaction stays open for many batches. It is committed when the store is idle, when it is old, when
//! the write-ahead log is long, and before a read that is not by id.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hapax_core::transition::Answer;
use hapax_core::{Deleted, Deletions, StoreError, StoreErrorKind, Swept, Timestamp};
use rusqlite::Connection;

use self::commit::IndexFlush;
use crate::clock::StoreClock;
use crate::config::CommitPolicy;
use crate::error::{Failure, Phase, RefuseReason};
use crate::job::{CommandJob, Job, JobBatch, command_name, send};
use crate::memtable::{AHEAD_BYTES_MAX, Memtable, Records};
use crate::meta::Meta;
use crate::ownership::OpenedFiles;
use crate::queue::{Queue, Taken};
use crate::row::{self, RowStatements, StoredRow};
use crate::sqlite_log::SqliteLog;
use crate::transaction::{NewRecords, WriteTransaction, wal_failure};
use crate::wal::{Wal, WalReadError};
use crate::{schema, sweep};

/// How many operations share an fsync at most. More would hardly make it cheaper for each, and the first would wait
/// longer.
const BATCH_MAX: usize = 1_024;

/// How long the store must be idle before a commit.
const IDLE: Duration = Duration::from_millis(10);
/// How long a transaction stays open under load. A read from another process waits for the commit.
const OPEN_MAX: Duration = Duration::from_millis(50);
/// The pause after a failed commit before it is retried.
const RETRY: Duration = Duration::from_secs(1);

/// How much room the database must have for each byte of the write-ahead log, and at least: rows have indexes, and pages
/// are never full.
const ROOM_FACTOR: u64 = 4;
const ROOM_MIN: u64 = 256 << 10;

/// How often the writer tries to lock the database when it cannot give up the transaction. Each try takes SQLite's busy
/// timeout.
const LOCK_TRIES: usize = 12;

/// State shared by the store's handle and its threads.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// Set for good when the store must not be used any more.
    pub(crate) stopped: AtomicBool,
    /// Set before `stopped` if files of the store were removed or replaced.
    replaced: AtomicBool,
    /// Whether acknowledged changes are visible to the writer's connection only.
    uncommitted: AtomicBool,
    pub(crate) operations: AtomicU64,
    pub(crate) commits: AtomicU64,
    pub(crate) deletions: Arc<Deletions>,
}

impl Shared {
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Why the store has stopped.
    pub(crate) fn stop_reason(&self) -> RefuseReason {
        if self.replaced.load(Ordering::Acquire) { RefuseReason::Replaced } else { RefuseReason::Stopped }
    }

    pub(crate) fn is_uncommitted(&self) -> bool {
        self.uncommitted.load(Ordering::Acquire)
    }
}

/// The state of the writer thread.
#[derive(Debug)]
pub(crate) struct Writer {
    connection: Connection,
    clock: StoreClock,
    /// The row `meta` as of the last commit.
    meta: Meta,
    /// The files of the store, as they were opened.
    pub(crate) opened_files: OpenedFiles,
    /// The time of the latest decision.
    latest: Timestamp,
    shared: Arc<Shared>,
    queue: Arc<Queue<Job>>,
    wal: Wal,
    sqlite_log: SqliteLog,
    /// The size of the last batch, and how long the writer waits for as many operations again.
    last_batch: usize,
    pub(crate) gather: Duration,
    pub(crate) commits: CommitPolicy,
    /// When the open transaction began.
    open_since: Option<Instant>,
    /// Whether SQLite's log was shortened for the current batch, because there was no room.
    shortened: bool,
    /// Bytes by which the database may grow, as of the last commit; none without a limit.
    room: Option<u64>,
    size_max: u64,
    /// When the last commit failed, if it did.
    commit_failed_at: Option<Instant>,
    /// Whether the current batch was retried after SQLite met a damaged page.
    retried: bool,
    memtable: Memtable,
}

impl Writer {
    pub(crate) fn new(
        connection: Connection,
        clock: StoreClock,
        shared: Arc<Shared>,
        queue: Arc<Queue<Job>>,
        wal: Wal,
        sqlite_log: SqliteLog,
        meta: Meta,
    ) -> Self {
        Self {
            connection,
            clock,
            meta,
            opened_files: OpenedFiles::default(),
            latest: Timestamp::from_millis(0),
            shared,
            queue,
            wal,
            sqlite_log,
            last_batch: 0,
            gather: Duration::ZERO,
            commits: CommitPolicy::default(),
            open_since: None,
            shortened: false,
            room: None,
            size_max: u64::MAX,
            commit_failed_at: None,
            retried: false,
            memtable: Memtable::new(&meta),
        }
    }

    pub(crate) fn memtable(&mut self) -> &mut Memtable {
        &mut self.memtable
    }

    /// Recovers what an earlier process left: completes the index, replays the write-ahead log, and makes open claims
    /// uncertain, because their owners are gone. Returns how many.
    pub(crate) fn restart(&mut self) -> Result<usize, Failure> {
        match self.restart_claims() {
            Err(failure) if failure.classify().kind == StoreErrorKind::Full => {
                // Removing what is due makes room in the file.
                self.roll_back()?;
                self.in_transaction(WalUse::Skip, self.clock.now(), |transaction| {
                    Ok(sweep::remove_due(transaction, usize::MAX)?)
                })?;
                self.commit_durably(|_| ())?;
                self.shorten_log();
                self.restart_claims()
            }
            result => result,
        }
    }

    fn restart_claims(&mut self) -> Result<usize, Failure> {
        let mut frames = self.wal.all_frames().map_err(|error| wal_failure(WalReadError::Io(error)))?;
        let restarted = self.in_transaction(WalUse::Skip, self.clock.now(), |transaction| {
            let connection = transaction.statements.connection;
            let mut restarted = 0;
            transaction.memtable.flush_left_by_crash(connection)?;
            transaction.replay(&mut frames)?;
            for rowid in sweep::in_progress(connection)? {
                if let StoredRow::Found(row) = row::at(connection, rowid)? {
                    restarted += usize::from(sweep::restart(transaction, row)?);
                }
            }
            Ok(restarted)
        })?;
        // Also if nothing was left: SQLite creates its log with the first commit, and the write-ahead log begins a generation
        // that was never written before.
        self.commit_generation()?;
        Ok(restarted)
    }

    /// Limits the database to `size_max` bytes from now on.
    pub(crate) fn limit_size(&mut self, size_max: u64) -> rusqlite::Result<()> {
        self.size_max = size_max;
        schema::limit_size(&self.connection, size_max)?;
        self.room = Some(schema::room(&self.connection)?);
        Ok(())
    }

    /// Serves until the queue is closed and empty, or the store must stop.
    pub(crate) fn run(mut self) {
        let _guard = StopGuard { shared: Arc::clone(&self.shared), queue: Arc::clone(&self.queue) };
        while let Some(jobs) = self.next_jobs() {
            self.serve(jobs);
        }
        self.close();
    }

    /// Waits for jobs; commits when the store is idle.
    fn next_jobs(&mut self) -> Option<Vec<Job>> {
        if self.commits == CommitPolicy::OnDemand {
            return self.queue.take(BATCH_MAX);
        }
        let mut wait = IDLE;
        if let Some(count) = self.gather_count() {
            self.queue.gather(count, Instant::now() + self.gather);
        }
        while self.open_since.is_some() {
            match self.queue.take_until(BATCH_MAX, Instant::now() + wait) {
                Taken::Jobs(jobs) => return Some(jobs),
                Taken::Closed => return None,
                // A failed commit is logged, and retried.
                Taken::TimedOut => drop(self.commit()),
            }
            wait = RETRY;
        }
        self.queue.take(BATCH_MAX)
    }

    /// How many operations to wait for: the callers of the last batch may soon ask together again. A lone caller does not
    /// wait.
    fn gather_count(&self) -> Option<usize> {
        Some(self.last_batch).filter(|served| *served > 1 && !self.gather.is_zero())
    }

    fn serve(&mut self, jobs: Vec<Job>) {
        (self.shortened, self.retried) = (false, false);
        let batch = JobBatch::of(jobs);
        self.last_batch = batch.commands.len();
        if !batch.commands.is_empty() {
            self.serve_commands(batch.commands, NewRecords::Accepted);
        }
        if !batch.reads.is_empty() {
            // After a failure the transaction has the acknowledged changes from the write-ahead log.
            let _ = self.attempt(|writer| writer.write_records(Records::All));
        }
        if !self.shared.is_stopped() {
            batch.reads.into_iter().for_each(|read| read.run(&self.connection));
        }
        for (batch_max, reply) in batch.sweeps {
            // Other changes must not fail with the sweep. If there is no room for a commit, the sweep may make some.
            let _ = self.commit();
            let swept = self.attempt(|writer| writer.sweep(batch_max));
            send(reply, swept.map_err(|failed| failed.error("sweep")));
        }
        for reply in batch.commits {
            send(reply, self.commit().map_err(|failed| failed.error("commit")));
        }
        let is_old = self.commits == CommitPolicy::Timed
            && self.open_since.is_some_and(|since| since.elapsed() >= OPEN_MAX);
        let may_try = self.commit_failed_at.is_none_or(|at| at.elapsed() >= RETRY);
        if (is_old || self.wal.is_long()) && may_try {
            // A failed commit is logged, and retried.
            let _ = self.commit();
        }
    }

    /// Applies commands as one batch, and replies. A batch that fails is split.
    fn serve_commands(&mut self, mut commands: Vec<CommandJob>, new_records: NewRecords) {
        let apply = |transaction: &mut WriteTransaction<'_>| {
            transaction.apply_commands(commands.iter().map(|job| &job.command), new_records)
        };
        match self.attempt(|writer| writer.apply_and_log(apply)) {
            Ok(results) => {
                self.shared.operations.fetch_add(commands.len() as u64, Ordering::Relaxed);
                for (job, result) in commands.into_iter().zip(results) {
                    let name = command_name(&job.command);
                    if matches!(&result, Ok(Answer::Deleted(Deleted::Applied))) {
                        self.shared.deletions.count(job.command.id());
                    }
                    job.respond(result.map_err(|reason| reason.error(name)));
                }
                if self.memtable.has_many_ended() {
                    // After a failure the transaction has these records from the write-ahead log.
                    let _ = self.attempt(|writer| writer.write_records(Records::Ended));
                }
            }
            // After a commit, and without new records, there may be room.
            Err(AttemptError::Failed(failure))
                if failure.classify().kind == StoreErrorKind::Full && new_records == NewRecords::Accepted =>
            {
                // If even the commit has no room, the commands fail.
                let _ = self.commit();
                self.serve_commands(commands, NewRecords::Refused);
            }
            // Another operation has read a damaged page in this transaction: SQLite then refuses to write in it.
            Err(AttemptError::Failed(failure))
                if failure.classify().kind == StoreErrorKind::Incompatible && !self.retried =>
            {
                self.retried = true;
                self.serve_commands(commands, new_records);
            }
            // One of the commands fails. Without it the others can succeed.
            Err(AttemptError::Failed(failure)) if commands.len() > 1 && failure.classify().separable => {
                let later = commands.split_off(commands.len() / 2);
                self.serve_commands(commands, new_records);
                self.serve_commands(later, new_records);
            }
            Err(failed) => {
                for job in commands {
                    let error = failed.error(command_name(&job.command));
                    job.respond(Err(error));
                }
            }
        }
    }

    /// Runs `act` on the database, unless the store has stopped. A failure is rolled back.
    fn attempt<T>(&mut self, act: impl FnOnce(&mut Self) -> Result<T, Failure>) -> Result<T, AttemptError> {
        if self.shared.is_stopped() {
            return Err(AttemptError::AlreadyStopped(self.shared.stop_reason()));
        }
        act(self).map_err(|failure| {
            // Recovery must not replay the batch, unless its callers are told `Unknown`.
            let failure = match self.wal.discard_batch() {
                Err(not_discarded) if failure.classify().kind != StoreErrorKind::Unknown => not_discarded,
                _ => failure,
            };
            self.recover_from(&failure);
            AttemptError::Failed(failure)
        })
    }

    /// Rolls back to what was acknowledged, or stops the store if the state of its files is unknown.
    fn recover_from(&mut self, failure: &Failure) {
        let class = failure.classify();
        if class.fatal {
            tracing::error!(error = %failure, "file store stopped; it must be opened again");
            return stop(&self.shared, &self.queue);
        }
        let rolled_back = self.roll_back().and_then(|()| {
            if class.kind == StoreErrorKind::Full && !self.shortened {
                self.shortened = true;
                self.shorten_log();
            }
            self.replay_wal()
        });
        if let Err(error) = rolled_back {
            tracing::error!(%failure, %error, "file store stopped after a failure; it must be opened again");
            stop(&self.shared, &self.queue);
        }
    }

    /// Checkpoints SQLite's log: a log that starts over has room even on a full disk, which a sweep may need.
    fn shorten_log(&self) {
        if let Err(error) = schema::shorten_log(&self.connection) {
            tracing::debug!(%error, "file store is full and SQLite's log cannot be shortened");
        }
    }

    /// Rolls back the open transaction.
    fn roll_back(&mut self) -> Result<(), Failure> {
        self.memtable.roll_back();
        self.open_since = None;
        // After some failures SQLite has rolled back already.
        if self.connection.is_autocommit() {
            Ok(())
        } else {
            Ok(self.connection.execute_batch("ROLLBACK")?)
        }
    }

    /// Applies the batches that were acknowledged since the last commit to the database again.
    fn replay_wal(&mut self) -> Result<(), Failure> {
        if self.wal.length() == 0 {
            self.shared.uncommitted.store(false, Ordering::Release);
            return Ok(());
        }
        // These records were accepted, and are in no table.
        schema::limit_size(&self.connection, u64::MAX)?;
        let mut frames = self.wal.frames().map_err(|error| wal_failure(WalReadError::Io(error)))?;
        self.wait_for_lock()?;
        self.in_transaction(WalUse::Skip, self.latest, |transaction| transaction.replay(&mut frames))?;
        schema::limit_size(&self.connection, self.size_max)?;
        if frames.read_length() == self.wal.length() {
            Ok(())
        } else {
            Err(wal_failure(WalReadError::Damaged("the write-ahead log is cut short".to_owned())))
        }
    }

    /// Begins a transaction even if another process, such as a database shell, holds SQLite's lock for a while.
    fn wait_for_lock(&mut self) -> Result<(), Failure> {
        let mut tries = 0;
        loop {
            match self.in_transaction(WalUse::Skip, self.latest, |_| Ok(())) {
                Err(failure) if !failure.classify().fatal && tries < LOCK_TRIES => tries += 1,
                result => return result,
            }
        }
    }

    /// Runs `apply` in the open transaction and fsyncs its changes in the write-ahead log.
    fn apply_and_log<T>(
        &mut self,
        apply: impl FnOnce(&mut WriteTransaction<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let was_open = self.open_since.is_some();
        let (value, wrote) = self.in_transaction(WalUse::Append, self.clock.now(), |transaction| {
            Ok((apply(transaction)?, transaction.wrote))
        })?;
        if wrote {
            if !self.can_acknowledge_first() {
                // The database must have room for it before callers are acknowledged.
                self.write_records(Records::All)?;
            }
            self.check_files()?;
            self.wal.sync()?;
            self.shared.uncommitted.store(true, Ordering::Release);
            self.shared.commits.fetch_add(1, Ordering::Relaxed);
        } else if !was_open {
            // Ending a transaction without changes does not touch the disk.
            self.end_unchanged()?;
        }
        Ok(value)
    }

    /// Fails if the open files are not those that the next process will find.
    fn check_files(&self) -> Result<(), Failure> {
        match self.opened_files.replaced() {
            None => Ok(()),
            Some(path) => {
                self.shared.replaced.store(true, Ordering::Release);
                Err(Failure::replaced(path))
            }
        }
    }

    /// Writes records of the memtable to the database.
    fn write_records(&mut self, records: Records) -> Result<(), Failure> {
        if !self.memtable.has_unwritten() {
            return Ok(());
        }
        self.in_transaction(WalUse::Skip, self.latest, |transaction| transaction.write_records(records))
    }

    /// Whether the batch is certain to find room in the database, so that callers may be acknowledged first.
    fn can_acknowledge_first(&self) -> bool {
        let batch = self.wal.batch_length();
        let needed = ROOM_MIN + ROOM_FACTOR * (self.wal.length() + batch);
        batch <= AHEAD_BYTES_MAX && self.room.is_none_or(|room| room >= needed)
    }

    fn end_unchanged(&mut self) -> Result<(), Failure> {
        self.open_since = None;
        Ok(self.connection.execute_batch("ROLLBACK")?)
    }

    fn sweep(&mut self, batch_max: usize) -> Result<Swept, Failure> {
        let was_open = self.open_since.is_some();
        let (swept, wrote) = self.in_transaction(WalUse::Skip, self.clock.now(), |transaction| {
            Ok((sweep::remove_due(transaction, batch_max)?, transaction.wrote))
        })?;
        if wrote {
            // A sweep is not in the write-ahead log, so it counts only once it is committed.
            self.commit_with(IndexFlush::Skip)?;
            self.shared.commits.fetch_add(1, Ordering::Relaxed);
        } else if !was_open {
            self.end_unchanged()?;
        }
        Ok(swept)
    }

    /// Runs `act` in the open transaction, begun if there is none, as of `now`.
    fn in_transaction<T>(
        &mut self,
        wal_use: WalUse,
        now: Timestamp,
        act: impl FnOnce(&mut WriteTransaction<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        if self.open_since.is_none() {
            let begin =
                self.connection.prepare_cached("BEGIN IMMEDIATE").and_then(|mut begin| begin.execute([]));
            begin.map_err(Failure::at(Phase::Begin))?;
            self.open_since = Some(Instant::now());
        }
        self.latest = self.latest.max(now);
        if wal_use == WalUse::Append {
            self.wal.begin(now);
        }
        act(&mut WriteTransaction {
            statements: RowStatements::new(&self.connection),
            now,
            wrote: false,
            memtable: &mut self.memtable,
            wal: (wal_use == WalUse::Append).then_some(&mut self.wal),
        })
    }
}

/// Whether changes go to the write-ahead log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum WalUse {
    Append,
    /// They are in it already, or count only once they are committed.
    Skip,
}

/// Why an attempt has no result.
#[derive(Debug)]
enum AttemptError {
    /// The store had stopped before.
    AlreadyStopped(RefuseReason),
    /// The transaction failed.
    Failed(Failure),
}

impl AttemptError {
    fn error(&self, op: &'static str) -> StoreError {
        match self {
            Self::AlreadyStopped(reason) => reason.error(op),
            Self::Failed(failure) => failure.error(op),
        }
    }
}

/// Stops the store also if its thread panics, so that no caller waits for a reply that will not come.
#[derive(Debug)]
struct StopGuard {
    shared: Arc<Shared>,
    queue: Arc<Queue<Job>>,
}

impl Drop for StopGuard {
    fn drop(&mut self) {
        stop(&self.shared, &self.queue);
    }
}

pub(crate) fn stop(shared: &Shared, queue: &Queue<Job>) {
    shared.stopped.store(true, Ordering::Release);
    queue.abort().into_iter().for_each(|job| job.refuse(shared.stop_reason()));
}

mod commit;
#[cfg(test)]
mod tests;
