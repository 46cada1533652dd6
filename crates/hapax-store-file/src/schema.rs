//! The database file: how it is made, told apart from others, and set up for a connection.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::config::Sync;
use crate::error::{Cause, OpenError};
use crate::journal::Generation;

/// The version of the layout that this crate reads and writes; SQLite's `user_version`.
pub const VERSION: u32 = 3;
/// Says whose file this is, to us and to `file(1)`; SQLite's `application_id`: "HAPX".
const APPLICATION_ID: u32 = 0x4841_5058;

/// Counts what a store cannot do without: a lookup without its index would be right, and hopelessly slow.
const PARTS: &str = "SELECT count(*) FROM sqlite_schema WHERE name IN \
                     ('record', 'outcome', 'meta', 'place', 'record_by_state')";

/// How large the log grows before its pages are moved into the database, in pages of 4 KiB: 32 MiB. A page that
/// changes often is then moved once instead of many times, and recovery still takes well under a second.
const CHECKPOINT_PAGES: u32 = 8_000;
/// How much of the database a connection keeps in memory at most, in KiB. The upper levels of the index by hash
/// of several million records fit; its leaves are the operating system's to keep.
const WRITER_CACHE_KIB: u32 = 65_536;
const READER_CACHE_KIB: u32 = 4_096;
/// What the connections of an owner keep in memory at most, in bytes.
pub(crate) const fn cache_bytes_max(readers: u64) -> u64 {
    (WRITER_CACHE_KIB as u64 + readers * READER_CACHE_KIB as u64) << 10
}

/// The most pages that SQLite counts.
const PAGES_MAX: u64 = 0xFFFF_FFFE;
/// More statements than this crate has.
const STATEMENTS_MAX: usize = 64;
/// How long a person's own transaction on the file, or on its log, is waited for.
const BUSY_WAIT: Duration = Duration::from_secs(5);

/// Refuses what is not a database of ours, and leaves it as it is.
pub(crate) fn check(path: &Path) -> Result<(), OpenError> {
    open(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map(drop)
}

/// Opens the database and makes sure that it is ours before anything is asked of it that could change it.
fn open(path: &Path, access: OpenFlags) -> Result<Connection, OpenError> {
    let failed = |source| engine(path, source);
    // Closing the last connection would move a stranger's log into the stranger's database.
    let keep_log = log_bytes(path) > 0;
    let connection =
        Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX).map_err(failed)?;
    connection.busy_timeout(BUSY_WAIT).map_err(failed)?;
    let set_keep_log = |keep| connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep);
    set_keep_log(keep_log).map_err(failed)?;
    check_connection(&connection, path)?;
    set_keep_log(false).map_err(failed)?;
    Ok(connection)
}

/// Bytes of the log beside the database at `path`.
pub(crate) fn log_bytes(path: &Path) -> u64 {
    fs::metadata(log_path(path)).map_or(0, |found| found.len())
}

/// Where the log of the database at `path` is.
pub(crate) fn log_path(path: &Path) -> PathBuf {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    log.into()
}

fn check_version(found: u32, path: &Path) -> Result<(), OpenError> {
    if found == VERSION { Ok(()) } else { Err(OpenError::Version { path: path.to_owned(), found }) }
}

/// Fills an empty file and leaves it complete, closed and without a log.
pub(crate) fn create(path: &Path) -> Result<(), OpenError> {
    let make = || {
        let connection = Connection::open(path)?;
        connection.execute_batch(&format!(
            "PRAGMA synchronous = FULL;
             BEGIN;
             PRAGMA application_id = {APPLICATION_ID};
             PRAGMA user_version = {VERSION};
             {}
             COMMIT;
             PRAGMA journal_mode = WAL;",
            include_str!("schema.sql")
        ))?;
        connection.close().map_err(|(_, error)| error)
    };
    make().map_err(|source| engine(path, source))
}

/// A connection that may write. There is one.
pub(crate) fn connect_writer(path: &Path, sync: Sync) -> Result<Connection, OpenError> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let prepare = || {
        set_up(&connection, WRITER_CACHE_KIB)?;
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
        let level = match sync {
            // The log is synced by `log.rs`, the engine syncs what is moved from it into the database.
            Sync::Full => "NORMAL",
            Sync::Off => "OFF",
        };
        connection.pragma_update(None, "synchronous", level)?;
        // Where a plain sync leaves the bytes in the drive's own memory.
        connection.pragma_update(None, "fullfsync", true)?;
        connection.pragma_update(None, "checkpoint_fullfsync", true)?;
        connection.pragma_update_and_check(None, "wal_autocheckpoint", CHECKPOINT_PAGES, |_| Ok(()))
    };
    prepare().map_err(|source| engine(path, source))?;
    Ok(connection)
}

/// A connection that only reads.
pub(crate) fn connect_reader(path: &Path) -> Result<Connection, OpenError> {
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    set_up(&connection, READER_CACHE_KIB).map_err(|source| engine(path, source))?;
    Ok(connection)
}

/// Keeps the database from growing beyond `size_max` bytes, or beyond what it has when that is more.
pub(crate) fn limit_size(connection: &Connection, size_max: u64) -> rusqlite::Result<()> {
    let page_bytes: u32 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    let pages = (size_max / u64::from(page_bytes)).clamp(1, PAGES_MAX);
    let pages = u32::try_from(pages).expect("PAGES_MAX fits");
    connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))
}

/// Bytes by which the database may grow, and those in it that are free.
pub(crate) fn room(connection: &Connection) -> rusqlite::Result<u64> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, u32>(0)).map(u64::from);
    let pages = (number("max_page_count")? + number("freelist_count")?).saturating_sub(number("page_count")?);
    Ok(pages * number("page_size")?)
}

/// Moves what it can from the log into the database, so that the log can start again from its beginning.
pub(crate) fn shorten_log(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
}

/// Moves what a crash or a failed sync left in the log into the database.
///
/// After a failed sync the operating system may show bytes of the log that the disk does not have, and a second
/// sync would not write them. Copied into the database they are written anew. That holds only if the log starts
/// again: what a crash leaves of it would otherwise be laid over the database once more.
pub(crate) fn make_log_durable(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let busy: bool = connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
        .map_err(|source| engine(path, source))?;
    if busy { Err(OpenError::LogHeld { path: path.to_owned() }) } else { Ok(()) }
}

/// The generation of the journal up to which everything is in the database.
pub(crate) fn journaled(connection: &Connection) -> rusqlite::Result<u64> {
    let generation: i64 = connection.query_row("SELECT journal FROM meta", [], |row| row.get(0))?;
    Ok(generation.unsigned_abs())
}

/// The generation of the journal that comes after what is in the database.
pub(crate) fn next_generation(connection: &Connection) -> rusqlite::Result<Generation> {
    connection.query_row("SELECT journal, salt FROM meta", [], |row| {
        Ok(Generation { number: row.get::<_, i64>(0)?.unsigned_abs() + 1, salt: row.get(1)? })
    })
}

/// Notes that everything up to `done` of the journal will be in the database when the transaction holds; which
/// generation comes next.
pub(crate) fn note_journaled(connection: &Connection, done: Generation) -> rusqlite::Result<Generation> {
    let number = i64::try_from(done.number).expect("no journal gets as far");
    let mut update =
        connection.prepare_cached("UPDATE meta SET journal = ?1, salt = random() RETURNING salt")?;
    let salt = update.query_row([number], |row| row.get(0))?;
    Ok(Generation { number: done.number + 1, salt })
}

fn set_up(connection: &Connection, cache_kib: u32) -> rusqlite::Result<()> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    // Without this the engine plans some statements anew for every value bound to them.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // A negative number means KiB instead of pages.
    connection.pragma_update(None, "cache_size", -i64::from(cache_kib))?;
    // A listing sorts a few numbers; that needs no file.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    // A damaged file must not get to run anything.
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)
}

/// What the engine itself says, log included.
fn check_connection(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, u32>(0));
    let foreign = || OpenError::Foreign { path: path.to_owned() };
    let failed = |source: rusqlite::Error| match source.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => foreign(),
        _ => engine(path, source),
    };
    if number("application_id").map_err(failed)? != APPLICATION_ID {
        return Err(foreign());
    }
    check_version(number("user_version").map_err(failed)?, path)?;
    let parts: i64 = connection.query_row(PARTS, [], |row| row.get(0)).map_err(failed)?;
    if parts == 5 { Ok(()) } else { Err(foreign()) }
}

fn engine(path: &Path, source: rusqlite::Error) -> OpenError {
    let path = path.to_owned();
    if Cause::of(&source) == Cause::Full {
        OpenError::Full { path }
    } else {
        OpenError::Engine { path, source }
    }
}
