//! The embedded, durable store of Hapax: one directory, one owning process, no server.
//!
//! | owner or executor crashes or pauses | process killed, same disk | power loss | other machine | promise |
//! |---|---|---|---|---|
//! | at most once holds | outcomes are durable | durable if the disk honours fsync | none: one node | at most once |
//!
//! # Set-up
//!
//! Name a directory on a local disk. It is made if it is missing, readable by its user only.
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
//! The records are in `hapax.db`, an SQLite database with its log `hapax.db-wal` beside it; the newest are in
//! `hapax.journal` until they are committed there, which takes 50 ms at most. A file `LOCK` names the process that owns
//! them; the lock itself is on the directory. To copy a store, stop its owner and copy all files, or take a snapshot of
//! the file system; `docs/guide/file.md` says more. People may look at it at any time:
//! `sqlite3 -readonly hapax.db 'SELECT * FROM records'`, or [`FileStore::open_read_only`].
//!
//! # What is lost when
//!
//! | what happens | what is lost |
//! |---|---|
//! | the process is killed at any moment | nothing acknowledged; its open claims are *uncertain* when the store is opened again |
//! | power fails | nothing acknowledged, if the disk really writes when told to sync |
//! | the disk or the allowed size is full | nothing: writes are refused with `Full` until there is room, reads and replays go on |
//! | a write or sync fails | the callers of that moment get `Unknown`, everybody later `Stopped`, until the store is opened again |
//! | bytes of a record change on the disk | the record is *unreadable*: never run again, never answered from, never overwritten |
//! | bytes of the index or of the journal change on the disk | nothing: keys whose page of the index is damaged are *unreadable*, or the store is not opened |
//! | the journal is missing after a crash, or the files are not of one moment | nothing: the store is not opened |
//! | files are removed or replaced while the store is open | nothing acknowledged: the owner stops |
//! | the wall clock is set back between two runs | nothing: the store's clock goes on from where it was |
//! | the directory is lost or an old copy of all of it is put back | everything since: keys are fresh again |
//! | the directory is in memory (tmpfs) and the machine stops | everything; the health says so |
//!
//! A record that cannot be read keeps its key: a claim is answered `Unreadable`, and every other write fails
//! with `Incompatible` and changes nothing. Somebody who knows what happened has to repair or remove its row. A
//! sweep leaves it, unless only its outcome is damaged and its time is over.
//!
//! Records carry checksums, and so do the pages of the index and what the store remembers about itself: a key is taken
//! for new only when a whole page of the index says so. The engine's own pages carry none; what is damaged in them
//! makes records unreadable, never fresh. [`FileStore::verify`] looks at everything, as does `hapax check --deep`. A
//! database of at most 64 MiB whose last owner did not end in an orderly way is looked at when it is opened, and
//! refused if its pages or its index are damaged.
//!
//! # How it works
//!
//! One thread writes. It takes all operations that wait, decides each with
//! [`transition`](hapax_core::transition), appends what was decided to the journal and answers after the disk has it:
//! many callers share one sync, and a lone caller waits for nobody. Then it writes what has ended to the database, and
//! commits, open claims too, when nobody asks for a moment, or after 50 ms. The newest entries of the index are in memory and are written later, many
//! to a page. Two more threads read. Nothing here blocks an async runtime, except opening and dropping the store.

mod clock;
mod config;
mod directory;
mod error;
mod index;
mod job;
mod journal;
mod leaf;
mod list;
mod log;
mod memory;
mod memtable;
mod meta;
mod ownership;
mod queue;
mod reader;
mod row;
mod schema;
mod store;
mod sweep;
mod verify;
mod work;
mod writer;

pub use config::Options;
pub use error::OpenError;
#[doc(hidden)]
pub use leaf::danger_trust_index;
pub use memory::memory_bytes_max;
pub use schema::VERSION;
pub use store::{Activity, FileStore, OUTCOME_BYTES_MAX, SCOPE_BYTES_MAX};
