//! The threads that read: they keep a long listing off the writer and every wait off the async runtime.

use std::fmt;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use hapax_core::{Lookup, RecordId, State, Stats, StoreError, StoreErrorKind, Timestamp};
use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::error::{Cause, Refusal};
use crate::index::Recent;
use crate::log::{Disk, SyncFailed};
use crate::queue::{Queue, Refused};
use crate::row::{self, Stored, millis, state_number};

/// One for a listing that takes its time, one for whoever looks a record up meanwhile.
const THREADS: usize = 2;

const COUNT: &str = "SELECT state, count(*) FROM record INDEXED BY record_by_state GROUP BY state";
const COUNT_LAPSED: &str = "SELECT count(*) FROM record WHERE state = ?1 AND lease_ms <= ?2";

type Job = Box<dyn FnOnce(&Connection) + Send>;

/// The reading threads of a store.
pub(crate) struct Readers {
    queue: Arc<Queue<Job>>,
    threads: Vec<JoinHandle<()>>,
    disk: Option<Arc<Disk>>,
}

/// Why a read gave no answer.
#[derive(Debug)]
pub(crate) enum ReadError {
    Engine(rusqlite::Error),
    Refused(Refusal),
}

impl From<rusqlite::Error> for ReadError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Engine(error)
    }
}

impl ReadError {
    fn into_store_error(self, op: &'static str) -> StoreError {
        match self {
            Self::Engine(error) => StoreError::new(Cause::of(&error).of_read(), op).with_source(error),
            Self::Refused(refusal) => refusal.error(op),
        }
    }
}

impl Readers {
    /// Starts the threads, each with its own connection.
    /// What they find is told when it is durable on `disk`, where this process writes to it.
    pub(crate) fn start(
        disk: Option<Arc<Disk>>,
        mut connect: impl FnMut() -> Result<Connection, StoreError>,
    ) -> Result<Self, StoreError> {
        let mut readers = Self { queue: Arc::new(Queue::new()), threads: Vec::with_capacity(THREADS), disk };
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
        let (reply, answer) = oneshot::channel();
        let disk = self.disk.clone();
        let job: Job = Box::new(move |connection| {
            let found = read(connection);
            let durable = disk.map_or(Ok(()), |disk| disk.settle());
            // Whoever asked may be gone.
            let _ = reply.send(found.and_then(|found| match durable {
                Ok(()) => Ok(found),
                Err(SyncFailed) => Err(ReadError::Refused(Refusal::Stopped)),
            }));
        });
        self.queue.push(job).map_err(|refused| match refused {
            Refused::Full => Refusal::QueueFull.error(op),
            Refused::Closed => Refusal::Stopped.error(op),
        })?;
        match answer.await {
            Ok(done) => done.map_err(|error| error.into_store_error(op)),
            Err(_) => Err(Refusal::Stopped.error(op)),
        }
    }
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

impl fmt::Debug for Readers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Readers").field("threads", &self.threads.len()).finish_non_exhaustive()
    }
}

fn serve(connection: &Connection, queue: &Arc<Queue<Job>>) {
    let _guard = AbortGuard(Arc::clone(queue));
    while let Some(jobs) = queue.take(1) {
        jobs.into_iter().for_each(|job| job(connection));
    }
}

/// Ends the reading also when a thread ends by a panic: nobody may wait for an answer that will not come.
struct AbortGuard(Arc<Queue<Job>>);

impl Drop for AbortGuard {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Reads one record.
pub(crate) fn get(
    connection: &Connection,
    recent: Option<&Recent>,
    id: &RecordId,
    now: Timestamp,
) -> Result<Lookup, ReadError> {
    let view = connection.unchecked_transaction()?;
    let recent = recent.map(|recent| recent.rows_of_in(&view, &row::hash_of(id))).transpose()?;
    Ok(match row::find(&view, recent, id)? {
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
