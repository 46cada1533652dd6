//! [`FileStore`]: the public handle. Starts the threads, sends them jobs, and joins them.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use hapax_core::transition::{Answer, Command};
use hapax_core::{
    BoxFuture, Caching, Claim, ClaimRequest, Deleted, Fenced, Health, Lease, Lookup, Nonce, Page, Promise,
    Query, Reason, RecordId, Recorded, Settled, Settlement, Stats, Store, StoreError, StoreErrorKind, Swept,
    Timestamp, Verdict,
};
use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::clock::StoreClock;
use crate::config::{Options, SyncMode};
use crate::directory::Directory;
use crate::error::{OpenError, RefuseReason};
use crate::job::{CommandJob, Job, command_name};
use crate::memtable::Entries;
use crate::meta::{Meta, MetaRow};
use crate::ownership::Ownership;
use crate::queue::{PushError, Queue};
use crate::reader::{self, ReadError, ReadJob, Readers};
use crate::sqlite_log::SqliteLog;
use crate::wal::{self, Wal};
use crate::writer::{Shared, Writer};
use crate::{list, schema, verify};

/// The most bytes that an outcome may have: the writer thread copies it while other operations wait.
pub const OUTCOME_BYTES_MAX: usize = 64 << 20;
/// The most bytes that the names of a scope may have together; they are stored with every record.
pub const SCOPE_BYTES_MAX: usize = 64 << 10;

/// The share of its size limit from which a database counts as nearly full, in percent.
const NEARLY_FULL_PERCENT: u64 = 90;
/// The size of SQLite's log from which the health warns: a reader keeps it from being reset.
const LOG_BYTES_NOTABLE: u64 = 1 << 30;
/// The size up to which a database is verified after a crash, which takes well under a second.
const VERIFY_BYTES_MAX: u64 = 64 << 20;
/// How long to wait for the owner's commit before the owner counts as gone: many times as long as a commit takes.
const OWNER_WAIT: Duration = Duration::from_millis(500);

/// Keeps records in a directory, durably before it acknowledges them. See the [crate](crate) for the guarantees.
///
/// Dropping the store finishes queued operations, commits, and releases the directory. It blocks on the disk, and needs no
/// async runtime.
#[derive(Debug)]
pub struct FileStore {
    // In drop order: the last connection to close checkpoints SQLite's log, and only then may another process take the
    // directory.
    readers: Readers,
    writer: Option<WriterThread>,
    /// The writer's memtable; none if another process owns the store.
    memtable: Option<Arc<Entries>>,
    shared: Arc<Shared>,
    clock: StoreClock,
    directory: Directory,
    sync: SyncMode,
    size_max: Option<u64>,
    _ownership: Option<Ownership>,
}

/// The number of writes since the store was opened.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Activity {
    /// Claims, renewals, completions, releases, settlements and deletions with a result.
    pub operations: u64,
    /// Fsyncs of batches of them, and of sweeps.
    pub commits: u64,
}

impl FileStore {
    /// Opens the store in `dir` as its only owner, and creates it if there is none.
    ///
    /// Open claims of an earlier process become uncertain. Blocks on the disk.
    ///
    /// # Errors
    /// [`InUse`](StoreErrorKind::InUse) when another process owns it or keeps its log from being emptied,
    /// [`Full`](StoreErrorKind::Full) when the disk has no room to recover from a crash,
    /// [`Incompatible`](StoreErrorKind::Incompatible) when this version cannot read the store,
    /// [`Unavailable`](StoreErrorKind::Unavailable) when the directory cannot be used. The source is an [`OpenError`], which
    /// says what to do. In all these cases nothing was changed.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// let store = hapax_store_file::FileStore::open(dir.path().join("hapax-data"))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, StoreError> {
        Options::new().open(dir)
    }

    /// Opens the store in `dir` for reading, also while another process owns it.
    ///
    /// Writes fail with [`Invalid`](StoreErrorKind::Invalid). Reads wait until the owner has committed what it has
    /// acknowledged. A store that was not closed in an orderly way is recovered first, as its next owner would do it, which
    /// needs write access.
    ///
    /// # Errors
    /// As [`open`](Self::open), and [`Unavailable`](StoreErrorKind::Unavailable) when there is no store.
    pub fn open_read_only(dir: impl AsRef<Path>) -> Result<Self, StoreError> {
        Options::new().open_read_only(dir)
    }

    /// Options for opening a store.
    pub fn options() -> Options {
        Options::new()
    }

    /// The number of writes since the store was opened: operations divided by commits is how many operations shared one
    /// fsync.
    pub fn activity(&self) -> Activity {
        Activity {
            operations: self.shared.operations.load(Ordering::Relaxed),
            commits: self.shared.commits.load(Ordering::Relaxed),
        }
    }

    /// Reads every page, every index and every record, and returns the damage that it finds.
    ///
    /// It reads the whole store, and keeps SQLite's log from being reset meanwhile. The findings name rows and pages,
    /// never content.
    ///
    /// # Errors
    /// As [`get`](Store::get).
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    /// # runtime.block_on(async {
    /// let store = hapax_store_file::FileStore::open(dir.path())?;
    /// assert!(store.verify().await?.is_empty());
    /// # Ok::<(), hapax_core::StoreError>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn verify(&self) -> Result<Vec<String>, StoreError> {
        self.read("verify", |connection| Ok(verify::all(connection)?)).await
    }

    pub(crate) fn open_with(dir: &Path, options: Options) -> Result<Self, StoreError> {
        let (directory, ownership) = Directory::owned(dir, options.network)?;
        let database = directory.database();
        let sqlite_error = |source| StoreError::from(OpenError::Engine { path: database.clone(), source });
        let was_closed = directory.sqlite_log_bytes() == 0 && directory.wal_bytes() == 0;
        let connection = schema::connect_writer(&database, options.sync)?;
        let mut meta = schema::read_meta(&connection, &database, directory.wal_bytes() > 0)?;
        check_generation(&directory, &meta)?;
        if !was_closed && reader::pages(&connection).map_err(sqlite_error)?.bytes() <= VERIFY_BYTES_MAX {
            let found = verify::pages(&connection).map_err(sqlite_error)?;
            if let Some(found) = found.into_iter().next() {
                return Err(OpenError::Damaged { path: database, found }.into());
            }
        }
        let generation = meta.next_generation();
        let mut wal = Wal::new(directory.wal(), directory.open_wal()?, options.sync, generation);
        if let Some(bytes) = options.commit_after {
            wal.commit_after(bytes);
        }
        let seen = check_frames(&directory, &wal)?;
        schema::checkpoint_on_close(&connection, &database)?;
        // First the write-ahead log, then `meta.is_open`, which requires it: a copy of the database alone is recognised.
        let inaccessible = |source| OpenError::Inaccessible { path: directory.wal(), source };
        wal.ensure_header().map_err(inaccessible)?;
        directory.sync()?;
        if !meta.is_open {
            meta.is_open = true;
            meta.write(&connection).map_err(sqlite_error)?;
        }
        schema::make_log_durable(&connection, &database)?;
        let clock = StoreClock::new(options.clock, meta.seen.max(seen));
        let shared = Arc::new(Shared::default());
        let queue = Arc::new(Queue::new());
        let sqlite_log = SqliteLog::new(schema::log_path(&database), options.sync);
        let (for_writer, jobs) = (Arc::clone(&shared), Arc::clone(&queue));
        let mut writer = Writer::new(connection, clock.clone(), for_writer, jobs, wal, sqlite_log, meta);
        if let Some(waiting) = options.index_after {
            writer.memtable().keep_at_least(waiting);
        }
        let restarted = writer.restart().map_err(|failure| match failure.classify().kind {
            StoreErrorKind::Full => OpenError::Full { path: database.clone() }.into(),
            StoreErrorKind::Incompatible => {
                OpenError::Damaged { path: database.clone(), found: failure.to_string() }.into()
            }
            _ => failure.error("open"),
        })?;
        // SQLite's log exists now.
        directory.sync()?;
        writer.opened_files = directory.opened_files()?;
        if restarted > 0 {
            tracing::warn!(restarted, "open claims of an earlier process became uncertain");
        }
        // Only now: claims of an earlier process must become uncertain also without room for new records.
        if let Some(size_max) = options.size_max {
            writer.limit_size(size_max).map_err(sqlite_error)?;
        }
        let memtable = Some(Arc::clone(writer.memtable().entries()));
        let readers = Readers::start(None, || Ok(schema::connect_reader(&database)?))?;
        writer.gather = options.gather;
        writer.commits = options.commits;
        Ok(Self {
            readers,
            memtable,
            writer: Some(WriterThread::start(writer, queue)?),
            shared,
            clock,
            directory,
            sync: options.sync,
            size_max: options.size_max,
            _ownership: Some(ownership),
        })
    }

    pub(crate) fn open_read_only_with(dir: &Path, options: Options) -> Result<Self, StoreError> {
        let directory = Directory::existing(dir, options.network)?;
        let database = directory.database();
        let meta = match Self::meta_if_consistent(&directory) {
            Ok(Some(meta)) => meta,
            // Its owner is gone: recover it, as its next owner would.
            Ok(None) => {
                match Self::open_with(dir, options.clone()) {
                    Err(error) if error.kind() != StoreErrorKind::InUse => return Err(error),
                    store => drop(store),
                }
                let connection = schema::connect_reader(&database)?;
                Meta::read_sealed(&connection)
                    .map_err(|source| OpenError::Engine { path: database.clone(), source })?
            }
            Err(error) => return Err(error),
        };
        let clock = StoreClock::new(options.clock, meta.seen);
        let readers = Readers::start(Some(directory.wal()), || Ok(schema::connect_reader(&database)?))?;
        Ok(Self {
            readers,
            memtable: None,
            writer: None,
            shared: Arc::new(Shared::default()),
            clock,
            directory,
            sync: options.sync,
            size_max: options.size_max,
            _ownership: None,
        })
    }

    /// Reads `meta`, if the store is owned or was closed in an orderly way; none if it has to be recovered.
    fn meta_if_consistent(directory: &Directory) -> Result<Option<Meta>, StoreError> {
        let path = directory.database();
        if schema::is_previous_version(&path)? {
            return Ok(None);
        }
        let connection = schema::connect_reader(&path)?;
        let meta = Meta::read(&connection).map_err(|source| OpenError::Engine { path, source })?;
        let MetaRow::Sealed(meta) = meta else {
            return Ok(None);
        };
        if meta.is_open && !directory.is_owned() {
            return Ok(None);
        }
        let is_committed = reader::wait_until_committed(&connection, &directory.wal(), OWNER_WAIT);
        let is_committed = is_committed.map_err(|error| error.into_store_error("open"))?;
        Ok(is_committed.then_some(meta))
    }

    /// Sends a job to the writer thread and awaits its result.
    async fn write<T>(
        &self,
        op: &'static str,
        job: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> Job,
    ) -> Result<T, StoreError> {
        let (reply, result) = oneshot::channel();
        self.send_to_writer(op, job(reply))?;
        result.await.unwrap_or_else(|_| Err(RefuseReason::WriterGone.error(op)))
    }

    fn send_to_writer(&self, op: &'static str, job: Job) -> Result<(), StoreError> {
        let Some(writer) = &self.writer else {
            return Err(RefuseReason::ReadOnly.error(op));
        };
        writer.queue.push(job).map_err(|error| match error {
            PushError::Full => RefuseReason::QueueFull.error(op),
            PushError::Closed => self.shared.stop_reason().error(op),
        })
    }

    /// Reads on a reader thread, after a commit of what was acknowledged.
    async fn read<T: Send + 'static>(
        &self,
        op: &'static str,
        read: impl FnOnce(&Connection) -> Result<T, ReadError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.refuse_if_stopped(op)?;
        if self.shared.is_uncommitted() {
            match self.write(op, |reply| Job::Commit { reply }).await {
                // There is no room for a commit. The writer's connection sees the changes all the same.
                Err(error) if error.kind() == StoreErrorKind::Full => {
                    return self.read_uncommitted(op, read).await;
                }
                committed => committed?,
            }
        }
        self.readers.run(op, read).await
    }

    /// Reads on the writer thread, which sees uncommitted changes.
    async fn read_uncommitted<T: Send + 'static>(
        &self,
        op: &'static str,
        read: impl FnOnce(&Connection) -> Result<T, ReadError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (read, pending) = ReadJob::new(read);
        self.send_to_writer(op, Job::Read(read))?;
        pending.wait(op).await
    }

    async fn execute(&self, command: Command) -> Result<Answer, StoreError> {
        let op = command_name(&command);
        check_size(&command).map_err(|reason| reason.error(op))?;
        self.write(op, |reply| Job::Command(CommandJob { command, reply })).await
    }

    async fn fenced(&self, command: Command) -> Result<Fenced, StoreError> {
        match self.execute(command).await? {
            Answer::Fenced(fenced) => Ok(fenced),
            other => unreachable!("a fenced write was answered with {other:?}"),
        }
    }

    fn refuse_if_stopped(&self, op: &'static str) -> Result<(), StoreError> {
        if self.shared.is_stopped() { Err(self.shared.stop_reason().error(op)) } else { Ok(()) }
    }

    fn warnings(&self, pages: reader::Pages) -> Vec<String> {
        let mut warnings = Vec::from_iter(self.directory.warning());
        if self.sync == SyncMode::Off {
            warnings.push("syncing is off: a power failure loses what was acknowledged".to_owned());
        }
        if let Some(size_max) = self.size_max {
            let percent = pages.used_bytes().saturating_mul(100) / size_max.max(1);
            if percent >= NEARLY_FULL_PERCENT {
                warnings.push(format!("{percent} % of the allowed size is used; sweep, or allow more"));
            }
        }
        if self.directory.sqlite_log_bytes() >= LOG_BYTES_NOTABLE {
            warnings.push("SQLite's log is larger than 1 GiB: a reader keeps it from being reset".to_owned());
        }
        warnings
    }
}

impl Store for FileStore {
    fn claim<'a>(&'a self, ask: &'a ClaimRequest) -> BoxFuture<'a, Result<Claim, StoreError>> {
        Box::pin(async move {
            match self.execute(Command::Claim(ask.clone())).await? {
                Answer::Claim(claim) => Ok(claim),
                other => unreachable!("a claim was answered with {other:?}"),
            }
        })
    }

    fn renew<'a>(&'a self, lease: &'a Lease) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        Box::pin(self.fenced(Command::Renew(lease.clone())))
    }

    fn complete<'a>(
        &'a self,
        lease: &'a Lease,
        done: &'a Recorded,
        retention: Duration,
    ) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        Box::pin(self.fenced(Command::Complete { lease: lease.clone(), done: done.clone(), retention }))
    }

    fn release<'a>(
        &'a self,
        lease: &'a Lease,
        answered: Option<&'a Recorded>,
    ) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        Box::pin(self.fenced(Command::Release { lease: lease.clone(), answered: answered.cloned() }))
    }

    fn abandon<'a>(&'a self, lease: &'a Lease, reason: Reason) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        Box::pin(self.fenced(Command::Abandon { lease: lease.clone(), reason }))
    }

    fn settle<'a>(
        &'a self,
        id: &'a RecordId,
        settlement: &'a Settlement,
    ) -> BoxFuture<'a, Result<Settled, StoreError>> {
        Box::pin(async move {
            match self.execute(Command::Settle { id: *id, settlement: settlement.clone() }).await? {
                Answer::Settled(settled) => Ok(settled),
                other => unreachable!("a settlement was answered with {other:?}"),
            }
        })
    }

    fn get<'a>(&'a self, id: &'a RecordId) -> BoxFuture<'a, Result<Lookup, StoreError>> {
        Box::pin(async move {
            self.refuse_if_stopped("get")?;
            let (id, clock, memtable) = (*id, self.clock.clone(), self.memtable.clone());
            let get =
                move |connection: &Connection| reader::get(connection, memtable.as_deref(), &id, clock.now());
            if self.shared.is_uncommitted() {
                self.read_uncommitted("get", get).await
            } else {
                self.readers.run("get", get).await
            }
        })
    }

    fn list<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<Page, StoreError>> {
        Box::pin(async move {
            let (query, clock) = (query.clone(), self.clock.clone());
            self.read("list", move |connection| list::list(connection, &query, clock.now())).await
        })
    }

    fn delete<'a>(&'a self, id: &'a RecordId, nonce: Nonce) -> BoxFuture<'a, Result<Deleted, StoreError>> {
        Box::pin(async move {
            match self.execute(Command::Delete { id: *id, nonce }).await? {
                Answer::Deleted(deleted) => Ok(deleted),
                other => unreachable!("a deletion was answered with {other:?}"),
            }
        })
    }

    fn sweep(&self, batch_max: usize) -> BoxFuture<'_, Result<Swept, StoreError>> {
        Box::pin(self.write("sweep", move |reply| Job::Sweep { batch_max, reply }))
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats, StoreError>> {
        Box::pin(async move {
            let clock = self.clock.clone();
            let mut stats =
                self.read("stats", move |connection| reader::stats(connection, clock.now())).await?;
            stats.bytes += self.directory.sqlite_log_bytes() + self.directory.wal_bytes();
            Ok(stats)
        })
    }

    fn health(&self) -> BoxFuture<'_, Result<Health, StoreError>> {
        Box::pin(async move {
            self.refuse_if_stopped("health")?;
            let pages = self.readers.run("health", |connection| Ok(reader::pages(connection)?)).await?;
            let promise = match self.sync {
                SyncMode::Full if self.directory.is_durable() => Promise::AtMostOnce,
                SyncMode::Full | SyncMode::Off => Promise::BestEffort,
            };
            Ok(Health::new("file", promise, self.warnings(pages)))
        })
    }

    fn outcome_bytes_max(&self) -> usize {
        OUTCOME_BYTES_MAX
    }

    /// A read-only store does not see the owner's deletions.
    fn caching(&self) -> Caching {
        match &self.writer {
            Some(_) => Caching::Owned(Arc::clone(&self.shared.deletions)),
            None => Caching::Shared,
        }
    }
}

/// The writer thread and its queue.
#[derive(Debug)]
struct WriterThread {
    queue: Arc<Queue<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl WriterThread {
    fn start(writer: Writer, queue: Arc<Queue<Job>>) -> Result<Self, StoreError> {
        let thread =
            thread::Builder::new()
                .name("hapax-file-write".to_owned())
                .spawn(move || writer.run())
                .map_err(|error| StoreError::new(StoreErrorKind::Unavailable, "open").with_source(error))?;
        Ok(Self { queue, thread: Some(thread) })
    }
}

impl Drop for WriterThread {
    fn drop(&mut self) {
        self.queue.close();
        if let Some(thread) = self.thread.take() {
            // A panic there has failed the operations that it concerns.
            let _ = thread.join();
        }
    }
}

/// Refuses a write-ahead log and a database of different times, and a store that was not closed in an orderly way and
/// has no write-ahead log.
fn check_generation(directory: &Directory, meta: &Meta) -> Result<(), OpenError> {
    let path = directory.wal();
    let failed = |source| OpenError::Inaccessible { path: path.clone(), source };
    let header = wal::header_generation_at(&path).map_err(failed)?;
    let number = meta.wal_generation.unsigned_abs();
    let damaged =
        |path: &Path, found: &str| Err(OpenError::Damaged { path: path.to_owned(), found: found.to_owned() });
    match header {
        // It is ahead by one, or by two once the next generation has begun.
        Some(header) if header > number + 2 => {
            damaged(&directory.database(), "its write-ahead log is of a later state")
        }
        Some(header) if meta.is_open && header <= number => damaged(&path, "it is older than the database"),
        None if meta.is_open && !path.exists() => damaged(
            &path,
            "it is missing, and has the latest acknowledged operations: the store was not closed in an orderly way",
        ),
        None if meta.is_open => {
            damaged(&path, "its header is damaged, and the store was not closed in an orderly way")
        }
        _ => Ok(()),
    }
}

/// Refuses a write-ahead log from which acknowledged batches are missing. Returns the time of its latest decision.
fn check_frames(directory: &Directory, wal: &Wal) -> Result<Timestamp, OpenError> {
    let path = directory.wal();
    let failed = |error| match error {
        wal::WalReadError::Io(source) => OpenError::Inaccessible { path: path.clone(), source },
        wal::WalReadError::Damaged(found) => OpenError::Damaged { path: path.clone(), found },
    };
    let found = wal::frame_generation_at(&path).map_err(|error| failed(error.into()))?;
    if found > Some(wal.generation().number) {
        let found = "its write-ahead log is of a later state".to_owned();
        return Err(OpenError::Damaged { path: directory.database(), found });
    }
    let mut latest = Timestamp::from_millis(0);
    let mut frames = wal.all_frames().map_err(|error| failed(error.into()))?;
    while let Some(frame) = frames.next().map_err(failed)? {
        latest = latest.max(frame.now);
    }
    frames.check_end().map_err(failed)?;
    Ok(latest)
}

fn check_size(command: &Command) -> Result<(), RefuseReason> {
    let recorded = match command {
        Command::Claim(ask) => {
            let scope = &ask.key.scope;
            return if scope.namespace().len() + scope.operation().len() > SCOPE_BYTES_MAX {
                Err(RefuseReason::ScopeTooLarge)
            } else {
                Ok(())
            };
        }
        Command::Complete { done, .. } => Some(done),
        Command::Release { answered, .. } => answered.as_ref(),
        Command::Settle { settlement, .. } => match &settlement.verdict {
            Verdict::Applied { recorded, .. } => Some(recorded),
            Verdict::NotApplied => None,
        },
        Command::Renew(_) | Command::Abandon { .. } | Command::Delete { .. } => None,
    };
    match recorded {
        Some(recorded) if recorded.len() > OUTCOME_BYTES_MAX => Err(RefuseReason::OutcomeTooLarge),
        _ => Ok(()),
    }
}
