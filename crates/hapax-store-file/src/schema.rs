//! The database file: creates it, recognises it, upgrades it, and configures connections.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::config::SyncMode;
use crate::error::{Cause, OpenError};
use crate::index;
use crate::leaf;
use crate::meta::{Meta, MetaRow};
use crate::verify;

/// The version of the layout that this crate reads and writes; SQLite's `user_version`.
pub const VERSION: u32 = 4;
/// The version before, whose index had no checksums. Its owner upgrades it when it opens the store.
const PREVIOUS_VERSION: u32 = 3;
/// Marks the file as ours, also for `file(1)`; SQLite's `application_id`: "HAPX".
const APPLICATION_ID: u32 = 0x4841_5058;

/// Counts the required tables and indexes: without the index on states, statements would be correct and very slow.
const PARTS: &str = "SELECT count(*) FROM sqlite_schema WHERE name IN \
                     ('record', 'outcome', 'meta', 'leaf', 'record_by_state')";

/// The table of the index, and `meta`.
const INDEX: &str = include_str!("index.sql");

/// Upgrades `meta` from the version before, and requests a rebuild of the index.
const FROM_PREVIOUS_VERSION: &str = "
    INSERT INTO meta SELECT 1, seen_ms, indexed_row, indexed_row + 1, 0, 0, journal, salt, 0, 'anew' FROM meta_before;
    DROP TABLE meta_before;
    DROP TABLE place;";

/// The size of SQLite's log at which it is checkpointed, in pages of 4 KiB: 32 MiB. A page that changes often is then
/// copied once instead of many times, and recovery still takes well under a second.
const CHECKPOINT_PAGES: u32 = 8_000;
/// The page cache of a connection, in KiB. The upper levels of the index of several million records fit; its leaves are
/// left to the operating system's cache.
const WRITER_CACHE_KIB: u32 = 65_536;
const READER_CACHE_KIB: u32 = 4_096;
/// The page caches of an owner's connections, in bytes.
pub(crate) const fn cache_bytes_max(readers: u64) -> u64 {
    (WRITER_CACHE_KIB as u64 + readers * READER_CACHE_KIB as u64) << 10
}

/// The most pages that SQLite counts.
const PAGES_MAX: u64 = 0xFFFF_FFFE;
/// Above the number of statements in this crate.
const STATEMENTS_MAX: usize = 64;
/// SQLite's busy timeout: how long to wait for another process's transaction, such as a database shell's.
const BUSY_WAIT: Duration = Duration::from_secs(5);

/// Refuses a file that is not a database of ours, without changing it.
pub(crate) fn check(path: &Path) -> Result<(), OpenError> {
    open(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map(drop)
}

/// Opens the database, and checks that it is ours before any statement that could change it.
fn open(path: &Path, access: OpenFlags) -> Result<Connection, OpenError> {
    let failed = |source| sqlite_error(path, source);
    // Otherwise closing the last connection would checkpoint another program's log, or a damaged one of ours.
    let keep_log = log_bytes(path) > 0;
    let connection =
        Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX).map_err(failed)?;
    connection.busy_timeout(BUSY_WAIT).map_err(failed)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep_log).map_err(failed)?;
    check_connection(&connection, path, access)?;
    Ok(connection)
}

/// Enables the checkpoint at the close of the last connection. Until then all files stay as they are.
pub(crate) fn checkpoint_on_close(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let accepted = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false);
    accepted.map(drop).map_err(|source| sqlite_error(path, source))
}

/// Bytes of SQLite's log beside the database at `path`.
pub(crate) fn log_bytes(path: &Path) -> u64 {
    fs::metadata(log_path(path)).map_or(0, |found| found.len())
}

/// The path of SQLite's log of the database at `path`.
pub(crate) fn log_path(path: &Path) -> PathBuf {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    log.into()
}

/// Fills an empty file, and leaves it complete, closed and without a log.
pub(crate) fn create(path: &Path) -> Result<(), OpenError> {
    let create = || {
        let connection = Connection::open(path)?;
        connection.execute_batch(&format!(
            "PRAGMA synchronous = FULL;
             BEGIN;
             PRAGMA application_id = {APPLICATION_ID};
             PRAGMA user_version = {VERSION};"
        ))?;
        create_tables(&connection)?;
        connection.execute_batch("COMMIT; PRAGMA journal_mode = WAL;")?;
        connection.close().map_err(|(_, error)| error)
    };
    create().map_err(|source| sqlite_error(path, source))
}

/// Creates the tables of an empty store.
pub(crate) fn create_tables(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(include_str!("schema.sql"))?;
    connection.execute_batch(INDEX)?;
    leaf::create(connection)?;
    Meta::new(random(connection)?).write(connection)
}

/// Reads `meta` for the owner of the store. Upgrades a store of the version before, and rebuilds the index if that was
/// requested.
pub(crate) fn read_meta(connection: &Connection, path: &Path, has_wal: bool) -> Result<Meta, OpenError> {
    let failed = |source| sqlite_error(path, source);
    let damaged = |found: String| OpenError::Damaged { path: path.to_owned(), found };
    if version(connection).map_err(failed)? == PREVIOUS_VERSION {
        if has_wal {
            // Only that version can replay its write-ahead log.
            return Err(OpenError::Version { path: path.to_owned(), found: PREVIOUS_VERSION });
        }
        let before = "ALTER TABLE meta RENAME TO meta_before;";
        let steps = format!(
            "BEGIN; {before} {INDEX} {FROM_PREVIOUS_VERSION} PRAGMA user_version = {VERSION}; COMMIT;"
        );
        connection.execute_batch(&steps).map_err(failed)?;
    }
    match Meta::read(connection).map_err(failed)? {
        MetaRow::Sealed(meta) => Ok(meta),
        MetaRow::Damaged => Err(damaged("the row in meta is damaged".to_owned())),
        MetaRow::Rebuild(mut meta) => {
            // A record that is missing from the index would run again.
            let found = verify::all_but_index(connection).map_err(failed)?;
            if let Some(found) = found.into_iter().next() {
                return Err(damaged(found));
            }
            let view = connection.unchecked_transaction().map_err(failed)?;
            let rebuilt = index::rebuild(&view, &mut meta).and_then(|()| meta.write(&view));
            rebuilt.and_then(|()| view.commit()).map_err(failed)?;
            tracing::info!(path = %path.display(), "file store rebuilt its index");
            Ok(meta)
        }
    }
}

/// Whether the database at `path` is of the version before, which only its owner can upgrade.
pub(crate) fn is_previous_version(path: &Path) -> Result<bool, OpenError> {
    match open(path, OpenFlags::SQLITE_OPEN_READ_ONLY) {
        Err(OpenError::Version { found: PREVIOUS_VERSION, .. }) => Ok(true),
        opened => opened.map(|_| false),
    }
}

/// An unpredictable number.
pub(crate) fn random(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached("SELECT random()")?.query_row([], |row| row.get(0))
}

fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// The one connection that writes.
pub(crate) fn connect_writer(path: &Path, sync: SyncMode) -> Result<Connection, OpenError> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let prepare = || {
        set_up(&connection, WRITER_CACHE_KIB)?;
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
        let level = match sync {
            // `sqlite_log.rs` syncs the log, SQLite syncs checkpoints.
            SyncMode::Full => "NORMAL",
            SyncMode::Off => "OFF",
        };
        connection.pragma_update(None, "synchronous", level)?;
        // For systems where a plain fsync leaves the bytes in the drive's cache.
        connection.pragma_update(None, "fullfsync", true)?;
        connection.pragma_update(None, "checkpoint_fullfsync", true)?;
        connection.pragma_update_and_check(None, "wal_autocheckpoint", CHECKPOINT_PAGES, |_| Ok(()))
    };
    prepare().map_err(|source| sqlite_error(path, source))?;
    Ok(connection)
}

/// A read-only connection.
pub(crate) fn connect_reader(path: &Path) -> Result<Connection, OpenError> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    set_up(&connection, READER_CACHE_KIB).map_err(|source| sqlite_error(path, source))?;
    Ok(connection)
}

/// Limits the database to `size_max` bytes, or to its present size if that is more.
pub(crate) fn limit_size(connection: &Connection, size_max: u64) -> rusqlite::Result<()> {
    let page_bytes: u32 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    let pages = (size_max / u64::from(page_bytes)).clamp(1, PAGES_MAX);
    let pages = u32::try_from(pages).expect("PAGES_MAX fits");
    connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))
}

/// Bytes by which the database may grow, and its free bytes.
pub(crate) fn room(connection: &Connection) -> rusqlite::Result<u64> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, u32>(0)).map(u64::from);
    let pages = (number("max_page_count")? + number("freelist_count")?).saturating_sub(number("page_count")?);
    Ok(pages * number("page_size")?)
}

/// Checkpoints SQLite's log as far as possible, so that it can start over from its beginning.
pub(crate) fn shorten_log(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
}

/// Checkpoints everything that a crash or a failed sync left in SQLite's log.
///
/// After a failed sync the operating system may show bytes of the log that the disk does not have, and a second sync
/// would not write them. The checkpoint writes them again, to the database. It has to truncate the log: recovery would
/// otherwise apply the rest of the log to the database once more.
pub(crate) fn make_log_durable(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let busy: bool = connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
        .map_err(|source| sqlite_error(path, source))?;
    if busy { Err(OpenError::LogHeld { path: path.to_owned() }) } else { Ok(()) }
}

fn set_up(connection: &Connection, cache_kib: u32) -> rusqlite::Result<()> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    // Otherwise SQLite plans some statements again for each bound value.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // A negative number means KiB instead of pages.
    connection.pragma_update(None, "cache_size", -i64::from(cache_kib))?;
    // Listings sort a few numbers, which needs no file.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    // A damaged schema must not run functions.
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)
}

/// Checks the application id, the version and the schema, with SQLite's log applied.
fn check_connection(connection: &Connection, path: &Path, access: OpenFlags) -> Result<(), OpenError> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, u32>(0));
    let foreign = || OpenError::Foreign { path: path.to_owned() };
    let failed = |source: rusqlite::Error| match source.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => foreign(),
        _ => sqlite_error(path, source),
    };
    if number("application_id").map_err(failed)? != APPLICATION_ID {
        return Err(foreign());
    }
    match number("user_version").map_err(failed)? {
        VERSION => {}
        PREVIOUS_VERSION if access == OpenFlags::SQLITE_OPEN_READ_WRITE => return Ok(()),
        found => return Err(OpenError::Version { path: path.to_owned(), found }),
    }
    let parts: i64 = connection.query_row(PARTS, [], |row| row.get(0)).map_err(failed)?;
    if parts == 5 { Ok(()) } else { Err(foreign()) }
}

fn sqlite_error(path: &Path, source: rusqlite::Error) -> OpenError {
    let path = path.to_owned();
    if Cause::of(&source) == Cause::Full {
        OpenError::Full { path }
    } else {
        OpenError::Engine { path, source }
    }
}
