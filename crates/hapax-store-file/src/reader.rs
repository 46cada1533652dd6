//! The reader threads, which keep long listings off the writer and blocking reads off the async runtime.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hapax_core::{Lookup, RecordId, State, Stats, StoreError, StoreErrorKind, Timestamp};
use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::error::{Cause, RefuseReason};
use crate::memtable::Entries;
use crate::meta::Meta;
use crate::queue::{PushError, Queue};
use crate::row::{self, StoredRow, millis, state_number};
use crate::wal;

/// One for a long listing, one for lookups meanwhile.
pub(crate) const THREADS: usize = 2;

const COUNT: &str = "SELECT state, count(*) FROM record INDEXED BY record_by_state GROUP BY state";
const COUNT_LAPSED: &str = "SELECT count(*) FROM record WHERE state = ?1 AND lease_ms <= ?2";

/// How long a read waits for the commit of the process that owns the store, and how often it checks.
const COMMIT_WAIT: Duration = Duration::from_secs(2);
const COMMIT_PAUSE: Duration = Duration::from_millis(2);

/// A read, with its reply channel.
pub(crate) struct ReadJob(Box<dyn FnOnce(&Connection) + Send>);

/// The result of a read, to be awaited.
pub(crate) struct PendingRead<T>(oneshot::Receiver<Result<T, ReadError>>);

impl ReadJob {
    pub(crate) fn new<T: Send + 'static>(
        read: impl FnOnce(&Connection) -> Result<T, ReadError> + Send + 'static,
    ) -> (Self, PendingRead<T>) {
        let (reply, result) = oneshot::channel();
        // The caller may be gone.
        let read = Box::new(move |connection: &Connection| drop(reply.send(read(connection))));
        (Self(read), PendingRead(result))
    }

    pub(crate) fn run(self, connection: &Connection) {
        (self.0)(connection);
    }
}

impl fmt::Debug for ReadJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadJob").finish_non_exhaustive()
    }
}

impl<T> PendingRead<T> {
    pub(crate) async fn wait(self, op: &'static str) -> Result<T, StoreError> {
        match self.0.await {
            Ok(result) => result.map_err(|error| error.into_store_error(op)),
            Err(_) => Err(RefuseReason::Stopped.error(op)),
        }
    }
}

/// The reader threads of a store.
#[derive(Debug)]
pub(crate) struct Readers {
    queue: Arc<Queue<ReadJob>>,
    threads: Vec<JoinHandle<()>>,
    /// The write-ahead log of the process that owns the store, if that is another one.
    wal: Option<PathBuf>,
}

/// Why a read failed.
#[derive(Debug)]
pub(crate) enum ReadError {
    Sqlite(rusqlite::Error),
    Io(io::Error),
    Refused(RefuseReason),
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<rusqlite::Error> for ReadError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl ReadError {
    pub(crate) fn into_store_error(self, op: &'static str) -> StoreError {
        match self {
            Self::Sqlite(error) => StoreError::new(Cause::of(&error).of_read(), op).with_source(error),
            Self::Io(error) => StoreError::new(StoreErrorKind::Unavailable, op).with_source(error),
            Self::Refused(reason) => reason.error(op),
        }
    }
}

impl Readers {
    /// Starts the threads, each with its own connection. If another process owns the store, `wal` is its write-ahead log, and
    /// reads wait until the database has what was acknowledged.
    pub(crate) fn start(
        wal: Option<PathBuf>,
        mut connect: impl FnMut() -> Result<Connection, StoreError>,
    ) -> Result<Self, StoreError> {
        let mut readers = Self { queue: Arc::new(Queue::new()), threads: Vec::with_capacity(THREADS), wal };
        for _ in 0..THREADS {
            let connection = connect()?;
            let queue = Arc::clone(&readers.queue);
            let thread = thread::Builder::new()
                .name("hapax-file-read".to_owned())
                .spawn(move || serve(&connection, &queue))
                .map_err(|error| StoreError::new(StoreErrorKind::Unavailable, "open").with_source(error))?;
            readers.threads.push(thread);
        }
        Ok(readers)
    }

    /// Runs `read` on one of the threads.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        op: &'static str,
        read: impl FnOnce(&Connection) -> Result<T, ReadError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let wal = self.wal.clone();
        let (read, found) = ReadJob::new(move |connection| {
            if let Some(wal) = wal
                && !wait_until_committed(connection, &wal, COMMIT_WAIT)?
            {
                return Err(ReadError::Refused(RefuseReason::NotCommitted));
            }
            read(connection)
        });
        self.queue.push(read).map_err(|error| match error {
            PushError::Full => RefuseReason::QueueFull.error(op),
            PushError::Closed => RefuseReason::Stopped.error(op),
        })?;
        found.wait(op).await
    }
}

/// Waits until the database has what the write-ahead log has at this moment; false when `wait` is over.
pub(crate) fn wait_until_committed(
    connection: &Connection,
    wal: &Path,
    wait: Duration,
) -> Result<bool, ReadError> {
    let Some(generation) = wal::frame_generation_at(wal)? else {
        return Ok(true);
    };
    let deadline = Instant::now() + wait;
    while Meta::read_sealed(connection)?.wal_generation.unsigned_abs() < generation {
        if Instant::now() >= deadline {
            return Ok(false);
        }
        thread::sleep(COMMIT_PAUSE);
    }
    Ok(true)
}

impl Drop for Readers {
    fn drop(&mut self) {
        self.queue.close();
        for thread in self.threads.drain(..) {
            // A panic there has failed the reads that it concerns.
            let _ = thread.join();
        }
    }
}

fn serve(connection: &Connection, queue: &Arc<Queue<ReadJob>>) {
    let _guard = AbortGuard(Arc::clone(queue));
    while let Some(reads) = queue.take(1) {
        reads.into_iter().for_each(|read| read.run(connection));
    }
}

/// Drops queued reads also if a thread panics, so that no caller waits for a reply that will not come.
struct AbortGuard(Arc<Queue<ReadJob>>);

impl Drop for AbortGuard {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Reads one record.
pub(crate) fn get(
    connection: &Connection,
    memtable: Option<&Entries>,
    id: &RecordId,
    now: Timestamp,
) -> Result<Lookup, ReadError> {
    let hash = row::hash_of(id);
    let stored = if connection.is_autocommit() {
        let view = connection.unchecked_transaction()?;
        let rows = memtable.map(|entries| entries.rows_of_in(&view, &hash)).transpose()?;
        row::find(&view, rows, id)?
    } else {
        // On the writer thread, which alone changes the entries.
        row::find(connection, memtable.map(|entries| entries.rows_of(&hash)), id)?
    };
    Ok(match stored {
        StoredRow::Absent => Lookup::Absent,
        StoredRow::Found(row) => Lookup::Found { record: Box::new(row.record), now },
        StoredRow::Unreadable(damage) => Lookup::Unreadable { why: damage.why },
    })
}

/// Counts records by their columns, unreadable ones included.
pub(crate) fn stats(connection: &Connection, now: Timestamp) -> Result<Stats, ReadError> {
    let mut stats = Stats::default();
    let mut statement = connection.prepare_cached(COUNT)?;
    let mut counts = statement.query([])?;
    while let Some(count) = counts.next()? {
        let (number, count): (i64, i64) = (count.get(0)?, count.get(1)?);
        let count = count.unsigned_abs();
        match State::ALL.into_iter().find(|state| state_number(*state) == number) {
            Some(State::InProgress) => stats.in_progress += count,
            Some(State::Completed) => stats.completed += count,
            Some(State::Failed) => stats.failed += count,
            Some(State::Released) => stats.released += count,
            // An unknown state counts as uncertain.
            Some(State::Uncertain) | None => stats.uncertain += count,
        }
    }
    let in_progress = state_number(State::InProgress);
    let lapsed: i64 =
        connection.prepare_cached(COUNT_LAPSED)?.query_row((in_progress, millis(now)), |row| row.get(0))?;
    // Counted a moment later, so there may be more.
    let lapsed = lapsed.unsigned_abs().min(stats.in_progress);
    stats.in_progress -= lapsed;
    stats.uncertain += lapsed;
    stats.bytes = pages(connection)?.bytes();
    Ok(stats)
}

/// The size of the database file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pages {
    count: u64,
    free: u64,
    page_bytes: u64,
}

impl Pages {
    pub(crate) fn bytes(self) -> u64 {
        self.count * self.page_bytes
    }

    /// Bytes in use, without free pages.
    pub(crate) fn used_bytes(self) -> u64 {
        self.count.saturating_sub(self.free) * self.page_bytes
    }
}

pub(crate) fn pages(connection: &Connection) -> rusqlite::Result<Pages> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, u32>(0)).map(u64::from);
    Ok(Pages {
        count: number("page_count")?,
        free: number("freelist_count")?,
        page_bytes: number("page_size")?,
    })
}
