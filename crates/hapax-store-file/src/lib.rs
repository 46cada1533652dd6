//! The embedded, durable store of Hapax: one directory, one owning process, no server.
//!
//! | owner or executor crashes or pauses | process killed, same disk | power loss | other machine | promise |
//! |---|---|---|---|---|
//! | at most once holds | outcomes are durable | durable if the disk honours fsync | none: one node | at most once |
//!
//! # Set-up
//!
//! Name a directory on a local disk. It is created if it is missing, readable by its user only.
//!
//! ```
//! use hapax_core::Store;
//! use hapax_store_file::FileStore;
//!
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("hapax-data");
//! let store = FileStore::open(path)?;
//! # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
//! # runtime.block_on(async {
//! assert_eq!(store.health().await?.promise, hapax_core::Promise::AtMostOnce);
//! # Ok::<(), hapax_core::StoreError>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The records are in `hapax.db`, an SQLite database with its log `hapax.db-wal` beside it; the newest are in the write-ahead
//! log `hapax.journal` until they are committed to the database, usually within 50 ms. A file `LOCK` names the process that
//! owns them; the lock itself is on the directory. To copy a store, stop its owner and copy all files, or take a snapshot of
//! the file system; `docs/guide/file.md` says more. Reading is possible at any time:
//! `sqlite3 -readonly hapax.db 'SELECT * FROM records'`, or [`FileStore::open_read_only`].
//!
//! # Failures
//!
//! | event | loss |
//! |---|---|
//! | the process is killed at any moment | nothing acknowledged; its open claims are *uncertain* when the store is opened again |
//! | power fails | nothing acknowledged, if the disk honours fsync |
//! | the disk or the allowed size is full | nothing: writes are refused with `Full` until there is room, reads and replays go on |
//! | a write or sync fails | callers in flight get `Unknown`, later ones `Stopped`, until the store is opened again |
//! | bytes of a record change on the disk | the record is *unreadable*: never run again, never replayed, never overwritten |
//! | bytes of the index or of the write-ahead log change on the disk | nothing: keys in the damaged page are *unreadable*, or the store is not opened |
//! | the write-ahead log is missing after a crash, or the files are copies from different times | nothing: the store is not opened |
//! | files are removed or replaced while the store is open | nothing acknowledged: the owner stops |
//! | the wall clock is set back between two runs | nothing: the store's clock goes on from where it was |
//! | the directory is lost or an old copy of all of it is put back | everything since: keys are fresh again |
//! | the directory is in memory (tmpfs) and the machine stops | everything; the health says so |
//!
//! An unreadable record keeps its key: a claim returns `Unreadable`, and every other write fails with `Incompatible` and
//! changes nothing, until an operator repairs or removes its row. A sweep leaves it, unless only its outcome is damaged and it
//! is due.
//!
//! Records have checksums, and so do the pages of the index and the state of the store itself: a key counts as
//! absent only if a page of the index with a valid checksum lacks it. SQLite's own pages have none; damage in them makes
//! records unreadable, never absent. [`FileStore::verify`] checks everything, as does `hapax check --deep`. After a crash, a
//! database of at most 64 MiB is checked when it is opened, and refused if its pages or its index are damaged.
//!
//! # Design
//!
//! Write-ahead log, memtable, SQLite. One writer thread takes all queued operations, decides each with
//! [`transition`](hapax_core::transition), fsyncs the batch in the write-ahead log and replies: concurrent callers share
//! one fsync. Records stay in the memtable until they have ended, and are then written to the database, which is committed
//! when the store is idle, or every 50 ms. Index entries stay in the memtable longer, and are flushed many to a page. A lookup
//! probes the memtable, then the index. Two more threads read. Only opening and dropping the store block an async runtime.

mod clock;
mod config;
mod directory;
mod error;
mod index;
mod job;
mod leaf;
mod list;
mod memory;
mod memtable;
mod meta;
mod ownership;
mod queue;
mod reader;
mod row;
mod schema;
mod sqlite_log;
mod store;
mod sweep;
mod transaction;
mod verify;
mod wal;
mod writer;

pub use config::Options;
pub use error::OpenError;
#[doc(hidden)]
pub use leaf::danger_trust_index;
pub use memory::memory_bytes_max;
pub use schema::VERSION;
pub use store::{Activity, FileStore, OUTCOME_BYTES_MAX, SCOPE_BYTES_MAX};
