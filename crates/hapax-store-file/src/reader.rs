//! The threads that read: they keep a long listing off the writer and every wait off the async runtime.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hapax_core::{Lookup, RecordId, State, Stats, StoreError, StoreErrorKind, Timestamp};
use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::error::{Cause, Refusal};
use crate::journal;
use crate::memtable::Entries;
use crate::meta::Meta;
use crate::queue::{Queue, Refused};
use crate::row::{self, Stored, millis, state_number};

/// One for a listing that takes its time, one for whoever looks a record up meanwhile.
pub(crate) const THREADS: usize = 2;

const COUNT: &str = "SELECT state, count(*) FROM record INDEXED BY record_by_state GROUP BY state";
const COUNT_LAPSED: &str = "SELECT count(*) FROM record WHERE state = ?1 AND lease_ms <= ?2";

/// How long the owner of a store is waited for to commit what it has written, and how often it is asked.
const COMMIT_WAIT: Duration = Duration::from_secs(2);
const COMMIT_PAUSE: Duration = Duration::from_millis(2);

/// Something to read, and who waits for it.
pub(crate) struct Read(Box<dyn FnOnce(&Connection) + Send>);

/// What a read finds.
pub(crate) struct Found<T>(oneshot::Receiver<Result<T, ReadError>>);

impl Read {
    pub(crate) fn new<T: Send + 'static>(
        read: impl FnOnce(&Connection) -> Result<T, ReadError> + Send + 'static,
    ) -> (Self, Found<T>) {
        let (reply, answer) = oneshot::channel();
        // Whoever asked may be gone.
        let read = Box::new(move |connection: &Connection| drop(reply.send(read(connection))));
        (Self(read), Found(answer))
    }

    pub(crate) fn run(self, connection: &Connection) {
        (self.0)(connection);
    }
}

impl fmt::Debug for Read {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Read").finish_non_exhaustive()
    }
}

impl<T> Found<T> {
    pub(crate) async fn wait(self, op: &'static str) -> Result<T, StoreError> {
        match self.0.await {
            Ok(done) => done.map_err(|error| error.into_store_error(op)),
            Err(_) => Err(Refusal::Stopped.error(op)),
        }
    }
}

/// The reading threads of a store.
#[derive(Debug)]
pub(crate) struct Readers {
    queue: Arc<Queue<Read>>,
    threads: Vec<JoinHandle<()>>,
    /// The journal of another process, which writes.
    journal: Option<PathBuf>,
}

/// Why a read gave no answer.
#[derive(Debug)]
pub(crate) enum ReadError {
    Engine(rusqlite::Error),
    Io(io::Error),
    Refused(Refusal),
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<rusqlite::Error> for ReadError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Engine(error)
    }
}

impl ReadError {
    pub(crate) fn into_store_error(self, op: &'static str) -> StoreError {
        match self {
            Self::Engine(error) => StoreError::new(Cause::of(&error).of_read(), op).with_source(error),
            Self::Io(error) => StoreError::new(StoreErrorKind::Unavailable, op).with_source(error),
            Self::Refused(refusal) => refusal.error(op),
        }
    }
}

impl Readers {
    /// Starts the threads, each with its own connection. Where another process writes to the database and to
    /// `journal`, they wait until what that has acknowledged is in the database.
    pub(crate) fn start(
        journal: Option<PathBuf>,
        mut connect: impl FnMut() -> Result<Connection, StoreError>,
    ) -> Result<Self, StoreError> {
        let mut readers =
            Self { queue: Arc::new(Queue::new()), threads: Vec::with_capacity(THREADS), journal };
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
        let journal = self.journal.clone();
        let (read, found) = Read::new(move |connection| {
            if let Some(journal) = journal
                && !is_committed(connection, &journal, COMMIT_WAIT)?
            {
                return Err(ReadError::Refused(Refusal::NotCommitted));
            }
            read(connection)
        });
        self.queue.push(read).map_err(|refused| match refused {
            Refused::Full => Refusal::QueueFull.error(op),
            Refused::Closed => Refusal::Stopped.error(op),
        })?;
        found.wait(op).await
    }
}

/// Whether what is in the journal of the process that writes is in the database too; waits for that, if need be.
pub(crate) fn is_committed(
    connection: &Connection,
    journal: &Path,
    wait: Duration,
) -> Result<bool, ReadError> {
    let Some(generation) = journal::generation_at(journal)? else {
        return Ok(true);
    };
    let deadline = Instant::now() + wait;
    while Meta::read_sealed(connection)?.journal.unsigned_abs() < generation {
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
            // A panic there was already reported to whoever waited.
            let _ = thread.join();
        }
    }
}

fn serve(connection: &Connection, queue: &Arc<Queue<Read>>) {
    let _guard = AbortGuard(Arc::clone(queue));
    while let Some(reads) = queue.take(1) {
        reads.into_iter().for_each(|read| read.run(connection));
    }
}

/// Ends the reading also when a thread ends by a panic: nobody may wait for an answer that will not come.
struct AbortGuard(Arc<Queue<Read>>);

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
        let recent = memtable.map(|entries| entries.rows_of_in(&view, &hash)).transpose()?;
        row::find(&view, recent, id)?
    } else {
        // The writer's own, in which no entry comes or goes meanwhile.
        row::find(connection, memtable.map(|entries| entries.rows_of(&hash)), id)?
    };
    Ok(match stored {
        Stored::Absent => Lookup::Absent,
        Stored::Found(row) => Lookup::Found { record: Box::new(row.record), now },
        Stored::Unreadable(damage) => Lookup::Unreadable { why: damage.why },
    })
}

/// Counts by what the columns say, records that cannot be read included.
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
            // A state that nobody knows is as good as not knowing.
            Some(State::Uncertain) | None => stats.uncertain += count,
        }
    }
    let in_progress = state_number(State::InProgress);
    let lapsed: i64 =
        connection.prepare_cached(COUNT_LAPSED)?.query_row((in_progress, millis(now)), |row| row.get(0))?;
    // Counted a moment later, so there may be more of them.
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

    /// Bytes that are not free to be used again.
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
