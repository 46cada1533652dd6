//! [`FileStore`]: the handle that callers hold. It starts the threads, hands them work and ends them.

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
use crate::config::{Options, Sync};
use crate::directory::Directory;
use crate::error::{OpenError, Refusal};
use crate::job::{Job, Step, op};
use crate::journal::{self, Journal};
use crate::log::Log;
use crate::memtable::Entries;
use crate::meta::{Meta, Stored};
use crate::ownership::Ownership;
use crate::queue::{Queue, Refused};
use crate::reader::{self, Read, ReadError, Readers};
use crate::writer::{Shared, Writer};
use crate::{list, schema, verify};

/// The most bytes that an outcome may have: the writer copies it while others wait.
pub const OUTCOME_BYTES_MAX: usize = 64 << 20;
/// The most bytes that the names in a scope may have together; they are stored with every record.
pub const SCOPE_BYTES_MAX: usize = 64 << 10;

/// From which share of its limit on a database is called nearly full, in percent.
const NEARLY_FULL_PERCENT: u64 = 90;
/// From which size on the log is worth a warning: a reader must have kept it from being reset.
const LOG_BYTES_NOTABLE: u64 = 1 << 30;
/// Up to which size a database is looked through after an end that was not orderly: that takes well under a
/// second.
const VERIFY_BYTES_MAX: u64 = 64 << 20;
/// How long an owner may take to commit what it has written before it is taken for gone: many times what it takes.
const OWNER_WAIT: Duration = Duration::from_millis(500);

/// Keeps records in a directory, durable before it answers. See the [crate](crate) for what that means.
///
/// Dropping the store finishes what was asked of it, moves its log into the database and frees the directory.
/// That takes as long as the disk does, and needs no async runtime.
#[derive(Debug)]
pub struct FileStore {
    // In the order in which they must end: the last connection to close moves the log into the database, and
    // the directory may be taken by another process only after that.
    readers: Readers,
    writer: Option<WriterThread>,
    /// The writer's memtable; none where another process writes.
    memtable: Option<Arc<Entries>>,
    shared: Arc<Shared>,
    clock: StoreClock,
    directory: Directory,
    sync: Sync,
    size_max: Option<u64>,
    _ownership: Option<Ownership>,
}

/// How much a store has written since it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Activity {
    /// Claims, renewals, completions, releases, settlements and deletions that were answered.
    pub operations: u64,
    /// Syncs of the disk that their callers waited for, shared with each other and with sweeps.
    pub commits: u64,
}

impl FileStore {
    /// Opens the store in `dir` as its one owner, and makes it if there is none.
    ///
    /// Claims that an earlier process left open become uncertain. This blocks for as long as the disk takes.
    ///
    /// # Errors
    /// [`InUse`](StoreErrorKind::InUse) when another process owns it or keeps its log from being emptied,
    /// [`Full`](StoreErrorKind::Full) when the disk has no room to note the open claims and to complete the index, [`Incompatible`](StoreErrorKind::Incompatible)
    /// when what is there is not a store that this version reads, [`Unavailable`](StoreErrorKind::Unavailable)
    /// when the directory cannot be used. The source is an [`OpenError`], which says what to do. In all these
    /// cases nothing was changed.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// let store = hapax_store_file::FileStore::open(dir.path().join("hapax-data"))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, StoreError> {
        Options::new().open(dir)
    }

    /// Opens the store in `dir` to look at it, also while another process owns it.
    ///
    /// Everything that writes answers [`Invalid`](StoreErrorKind::Invalid). What the owner has acknowledged is seen, after
    /// the moment that it takes to commit it. A store that its owner left without an orderly end is put in order first,
    /// as its next owner would do it, which needs the right to write.
    ///
    /// # Errors
    /// As [`open`](Self::open), and [`Unavailable`](StoreErrorKind::Unavailable) when there is no store.
    pub fn open_read_only(dir: impl AsRef<Path>) -> Result<Self, StoreError> {
        Options::new().open_read_only(dir)
    }

    /// More about how to open a store.
    pub fn options() -> Options {
        Options::new()
    }

    /// How much was written since the store was opened: operations divided by commits is how many callers
    /// shared one sync of the disk.
    pub fn activity(&self) -> Activity {
        Activity {
            operations: self.shared.operations.load(Ordering::Relaxed),
            commits: self.shared.commits.load(Ordering::Relaxed),
        }
    }

    /// Reads every page, every index and every record, and tells what is damaged; nothing when all is well.
    ///
    /// It takes time in proportion to the size of the store, and keeps the log of an owner who writes meanwhile
    /// from being reset. What is told names rows and pages, never content.
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
        let engine = |source| StoreError::from(OpenError::Engine { path: database.clone(), source });
        let is_orderly = directory.log_bytes() == 0 && directory.journal_bytes() == 0;
        let connection = schema::connect_writer(&database, options.sync)?;
        let mut meta = schema::read_meta(&connection, &database, directory.journal_bytes() > 0)?;
        check_mark(&directory, &meta)?;
        if !is_orderly && reader::pages(&connection).map_err(engine)?.bytes() <= VERIFY_BYTES_MAX {
            let found = verify::pages(&connection).map_err(engine)?;
            if let Some(found) = found.into_iter().next() {
                return Err(OpenError::Damaged { path: database, found }.into());
            }
        }
        let generation = meta.next_generation();
        let mut journal =
            Journal::new(directory.journal(), directory.open_journal()?, options.sync, generation);
        if let Some(bytes) = options.commit_after {
            journal.commit_after(bytes);
        }
        let seen = check_frames(&directory, &journal)?;
        schema::accept_log(&connection, &database)?;
        // First the journal, then the word that there must be one: a copy of the database alone tells that it is one.
        let journal_path = directory.journal();
        let begun = journal.mark_beginning();
        begun.map_err(|source| OpenError::Inaccessible { path: journal_path, source })?;
        directory.sync()?;
        if !meta.is_open {
            meta.is_open = true;
            meta.write(&connection).map_err(engine)?;
        }
        schema::make_log_durable(&connection, &database)?;
        let clock = StoreClock::new(options.clock, meta.seen.max(seen));
        let shared = Arc::new(Shared::default());
        let queue = Arc::new(Queue::new());
        let log = Log::new(schema::log_path(&database), options.sync);
        let (for_writer, of_writer) = (Arc::clone(&shared), Arc::clone(&queue));
        let mut writer = Writer::new(connection, clock.clone(), for_writer, of_writer, journal, log, meta);
        if let Some(waiting) = options.index_after {
            writer.memtable().let_wait(waiting);
        }
        let restarted = writer.restart().map_err(|failure| match failure.judge().kind {
            StoreErrorKind::Full => OpenError::Full { path: database.clone() }.into(),
            StoreErrorKind::Incompatible => {
                OpenError::Damaged { path: database.clone(), found: failure.to_string() }.into()
            }
            _ => failure.error("open"),
        })?;
        // The log is there now.
        directory.sync()?;
        writer.footing = directory.footing()?;
        if restarted > 0 {
            tracing::warn!(restarted, "claims of an earlier process are uncertain now");
        }
        // Only now: the claims of an earlier process must be uncertain also where there is no room for others.
        if let Some(size_max) = options.size_max {
            writer.limit_size(size_max).map_err(engine)?;
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
        let meta = match Self::meta_of_owned(&directory) {
            Ok(Some(meta)) => meta,
            // Its owner has ended and left something to be put in order, as its next owner would.
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
        let readers = Readers::start(Some(directory.journal()), || Ok(schema::connect_reader(&database)?))?;
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

    /// What the store remembers about itself, where an owner is there or has ended in an orderly way; none where it has
    /// to be put in order.
    fn meta_of_owned(directory: &Directory) -> Result<Option<Meta>, StoreError> {
        let path = directory.database();
        if schema::is_of_version_before(&path)? {
            return Ok(None);
        }
        let connection = schema::connect_reader(&path)?;
        let meta = Meta::read(&connection).map_err(|source| OpenError::Engine { path, source })?;
        let Stored::Sealed(meta) = meta else {
            return Ok(None);
        };
        if meta.is_open && !directory.is_owned() {
            return Ok(None);
        }
        let is_committed = reader::is_committed(&connection, &directory.journal(), OWNER_WAIT);
        let is_committed = is_committed.map_err(|error| error.into_store_error("open"))?;
        Ok(is_committed.then_some(meta))
    }

    /// Hands a job to the writer and waits for its answer.
    async fn write<T>(
        &self,
        op: &'static str,
        job: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> Job,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.hand_to_writer(op, job(reply))?;
        answer.await.unwrap_or_else(|_| Err(Refusal::AnswerLost.error(op)))
    }

    fn hand_to_writer(&self, op: &'static str, job: Job) -> Result<(), StoreError> {
        let Some(writer) = &self.writer else {
            return Err(Refusal::ReadOnly.error(op));
        };
        writer.queue.push(job).map_err(|refused| match refused {
            Refused::Full => Refusal::QueueFull.error(op),
            Refused::Closed => self.shared.refusal().error(op),
        })
    }

    /// Reads what was acknowledged, on a thread of its own.
    async fn read<T: Send + 'static>(
        &self,
        op: &'static str,
        read: impl FnOnce(&Connection) -> Result<T, ReadError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.refuse_if_stopped(op)?;
        if self.shared.is_uncommitted() {
            match self.write(op, |reply| Job::Commit { reply }).await {
                // There is no room for a commit. The writer sees what it has written all the same.
                Err(error) if error.kind() == StoreErrorKind::Full => {
                    return self.read_uncommitted(op, read).await;
                }
                committed => committed?,
            }
        }
        self.readers.run(op, read).await
    }

    /// Reads what was acknowledged on the writing thread, which need not commit it for that.
    async fn read_uncommitted<T: Send + 'static>(
        &self,
        op: &'static str,
        read: impl FnOnce(&Connection) -> Result<T, ReadError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (read, found) = Read::new(read);
        self.hand_to_writer(op, Job::Read(read))?;
        found.wait(op).await
    }

    async fn step(&self, command: Command) -> Result<Answer, StoreError> {
        let op = op(&command);
        check_size(&command).map_err(|refusal| refusal.error(op))?;
        self.write(op, |reply| Job::Step(Step { command, reply })).await
    }

    async fn fenced(&self, command: Command) -> Result<Fenced, StoreError> {
        match self.step(command).await? {
            Answer::Fenced(fenced) => Ok(fenced),
            other => unreachable!("a fenced write was answered with {other:?}"),
        }
    }

    fn refuse_if_stopped(&self, op: &'static str) -> Result<(), StoreError> {
        if self.shared.is_stopped() { Err(self.shared.refusal().error(op)) } else { Ok(()) }
    }

    fn warnings(&self, pages: reader::Pages) -> Vec<String> {
        let mut warnings = Vec::from_iter(self.directory.warning());
        if self.sync == Sync::Off {
            warnings.push("syncing is off: a power failure loses what was acknowledged".to_owned());
        }
        if let Some(size_max) = self.size_max {
            let percent = pages.used_bytes().saturating_mul(100) / size_max.max(1);
            if percent >= NEARLY_FULL_PERCENT {
                warnings.push(format!("{percent} % of the allowed size are used; sweep, or allow more"));
            }
        }
        if self.directory.log_bytes() >= LOG_BYTES_NOTABLE {
            warnings.push("the log is larger than 1 GiB: a reader keeps it from being reset".to_owned());
        }
        warnings
    }
}

impl Store for FileStore {
    fn claim<'a>(&'a self, ask: &'a ClaimRequest) -> BoxFuture<'a, Result<Claim, StoreError>> {
        Box::pin(async move {
            match self.step(Command::Claim(ask.clone())).await? {
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
            match self.step(Command::Settle { id: *id, settlement: settlement.clone() }).await? {
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
            match self.step(Command::Delete { id: *id, nonce }).await? {
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
            stats.bytes += self.directory.log_bytes() + self.directory.journal_bytes();
            Ok(stats)
        })
    }

    fn health(&self) -> BoxFuture<'_, Result<Health, StoreError>> {
        Box::pin(async move {
            self.refuse_if_stopped("health")?;
            let pages = self.readers.run("health", |connection| Ok(reader::pages(connection)?)).await?;
            let promise = match self.sync {
                Sync::Full if self.directory.is_durable() => Promise::AtMostOnce,
                Sync::Full | Sync::Off => Promise::BestEffort,
            };
            Ok(Health::new("file", promise, self.warnings(pages)))
        })
    }

    fn outcome_bytes_max(&self) -> usize {
        OUTCOME_BYTES_MAX
    }

    /// Where another process owns the store, deletions are not seen here.
    fn caching(&self) -> Caching {
        match &self.writer {
            Some(_) => Caching::Owned(Arc::clone(&self.shared.deletions)),
            None => Caching::Shared,
        }
    }
}

/// The writing thread and the way to it.
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
            // A panic there was already reported to whoever waited.
            let _ = thread.join();
        }
    }
}

/// Refuses a journal and a database that are not of one moment, and a store that did not end in an orderly way and has
/// no journal any more.
fn check_mark(directory: &Directory, meta: &Meta) -> Result<(), OpenError> {
    let path = directory.journal();
    let failed = |source| OpenError::Inaccessible { path: path.clone(), source };
    let mark = journal::newest_mark_at(&path).map_err(failed)?;
    let number = meta.journal.unsigned_abs();
    let damaged =
        |path: &Path, found: &str| Err(OpenError::Damaged { path: path.to_owned(), found: found.to_owned() });
    match mark {
        // It is ahead by one, or by two when the next commit was about to be made.
        Some(mark) if mark > number + 2 => {
            damaged(&directory.database(), "its journal goes on from a later state of it")
        }
        Some(mark) if meta.is_open && mark <= number => {
            damaged(&path, "it is older than the database, which goes on from a later state of it")
        }
        None if meta.is_open && !path.exists() => damaged(
            &path,
            "it is missing, and what was acknowledged last is in it: the store did not end in an orderly way",
        ),
        None if meta.is_open => damaged(
            &path,
            "its beginning is not what was written, and the store did not end in an orderly way",
        ),
        _ => Ok(()),
    }
}

/// Refuses a journal of which something is missing that was acknowledged. The time of the latest decision in it.
fn check_frames(directory: &Directory, journal: &Journal) -> Result<Timestamp, OpenError> {
    let path = directory.journal();
    let failed = |error| match error {
        journal::ReadError::Io(source) => OpenError::Inaccessible { path: path.clone(), source },
        journal::ReadError::Damaged(found) => OpenError::Damaged { path: path.clone(), found },
    };
    let found = journal::generation_at(&path).map_err(|error| failed(error.into()))?;
    if found > Some(journal.generation().number) {
        let found = "its journal goes on from a later state of it".to_owned();
        return Err(OpenError::Damaged { path: directory.database(), found });
    }
    let mut latest = Timestamp::from_millis(0);
    let mut frames = journal.all_frames().map_err(|error| failed(error.into()))?;
    while let Some(frame) = frames.next().map_err(failed)? {
        latest = latest.max(frame.now);
    }
    frames.check_end().map_err(failed)?;
    Ok(latest)
}

fn check_size(command: &Command) -> Result<(), Refusal> {
    let recorded = match command {
        Command::Claim(ask) => {
            let scope = &ask.key.scope;
            return if scope.namespace().len() + scope.operation().len() > SCOPE_BYTES_MAX {
                Err(Refusal::ScopeTooLarge)
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
        Some(recorded) if recorded.len() > OUTCOME_BYTES_MAX => Err(Refusal::OutcomeTooLarge),
        _ => Ok(()),
    }
}
