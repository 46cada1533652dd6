//! The database file: how it is made, told apart from others, and set up for a connection.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::config::Sync;
use crate::error::{Cause, OpenError};
use crate::index;
use crate::leaf;
use crate::meta::{Meta, Stored};
use crate::verify;

/// The version of the layout that this crate reads and writes; SQLite's `user_version`.
pub const VERSION: u32 = 4;
/// The version before it, whose index had no checksums. It is brought to this one when its owner opens it.
const VERSION_BEFORE: u32 = 3;
/// Says whose file this is, to us and to `file(1)`; SQLite's `application_id`: "HAPX".
const APPLICATION_ID: u32 = 0x4841_5058;

/// Counts what a store cannot do without: a lookup without its index would be right, and hopelessly slow.
const PARTS: &str = "SELECT count(*) FROM sqlite_schema WHERE name IN \
                     ('record', 'outcome', 'meta', 'leaf', 'record_by_state')";

/// The tables of the index, and what the store remembers about itself.
const INDEX: &str = include_str!("index.sql");

/// Takes what the version before remembered, and asks for the index to be made anew.
const FROM_VERSION_BEFORE: &str = "
    INSERT INTO meta SELECT 1, seen_ms, indexed_row, indexed_row + 1, 0, 0, journal, salt, 0, 'anew' FROM meta_before;
    DROP TABLE meta_before;
    DROP TABLE place;";

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
    // Closing the last connection would move a stranger's log into the stranger's database, and a damaged one into ours.
    let keep_log = log_bytes(path) > 0;
    let connection =
        Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX).map_err(failed)?;
    connection.busy_timeout(BUSY_WAIT).map_err(failed)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep_log).map_err(failed)?;
    check_connection(&connection, path, access)?;
    Ok(connection)
}

/// Lets the log be moved into the database when the connection is the last to close. Until then all files are left as
/// they were found.
pub(crate) fn accept_log(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let accepted = connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false);
    accepted.map(drop).map_err(|source| engine(path, source))
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

/// Fills an empty file and leaves it complete, closed and without a log.
pub(crate) fn create(path: &Path) -> Result<(), OpenError> {
    let make = || {
        let connection = Connection::open(path)?;
        connection.execute_batch(&format!(
            "PRAGMA synchronous = FULL;
             BEGIN;
             PRAGMA application_id = {APPLICATION_ID};
             PRAGMA user_version = {VERSION};"
        ))?;
        make_tables(&connection)?;
        connection.execute_batch("COMMIT; PRAGMA journal_mode = WAL;")?;
        connection.close().map_err(|(_, error)| error)
    };
    make().map_err(|source| engine(path, source))
}

/// Makes the tables of a store without records.
pub(crate) fn make_tables(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(include_str!("schema.sql"))?;
    connection.execute_batch(INDEX)?;
    leaf::make(connection)?;
    Meta::new(random(connection)?).write(connection)
}

/// What the store remembers about itself, for its owner. A store of the version before is brought to this one, and the
/// index is made anew where that was asked for.
pub(crate) fn read_meta(connection: &Connection, path: &Path, has_journal: bool) -> Result<Meta, OpenError> {
    let failed = |source| engine(path, source);
    let damaged = |found: String| OpenError::Damaged { path: path.to_owned(), found };
    if version(connection).map_err(failed)? == VERSION_BEFORE {
        if has_journal {
            // It ends what it has begun, and only it reads its journal.
            return Err(OpenError::Version { path: path.to_owned(), found: VERSION_BEFORE });
        }
        let before = "ALTER TABLE meta RENAME TO meta_before;";
        let steps =
            format!("BEGIN; {before} {INDEX} {FROM_VERSION_BEFORE} PRAGMA user_version = {VERSION}; COMMIT;");
        connection.execute_batch(&steps).map_err(failed)?;
    }
    match Meta::read(connection).map_err(failed)? {
        Stored::Sealed(meta) => Ok(meta),
        Stored::Damaged => Err(damaged("what the store remembers about itself is damaged".to_owned())),
        Stored::Anew(mut meta) => {
            // A record that the index would not lead to would run again.
            let found = verify::all_but_index(connection).map_err(failed)?;
            if let Some(found) = found.into_iter().next() {
                return Err(damaged(found));
            }
            let view = connection.unchecked_transaction().map_err(failed)?;
            let made = index::make_anew(&view, &mut meta).and_then(|()| meta.write(&view));
            made.and_then(|()| view.commit()).map_err(failed)?;
            tracing::info!(path = %path.display(), "file store made its index anew");
            Ok(meta)
        }
    }
}

/// Whether the database at `path` is of the version before, which only its owner reads.
pub(crate) fn is_of_version_before(path: &Path) -> Result<bool, OpenError> {
    match open(path, OpenFlags::SQLITE_OPEN_READ_ONLY) {
        Err(OpenError::Version { found: VERSION_BEFORE, .. }) => Ok(true),
        opened => opened.map(|_| false),
    }
}

/// A number that cannot be guessed.
pub(crate) fn random(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached("SELECT random()")?.query_row([], |row| row.get(0))
}

fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
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
fn check_connection(connection: &Connection, path: &Path, access: OpenFlags) -> Result<(), OpenError> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, u32>(0));
    let foreign = || OpenError::Foreign { path: path.to_owned() };
    let failed = |source: rusqlite::Error| match source.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => foreign(),
        _ => engine(path, source),
    };
    if number("application_id").map_err(failed)? != APPLICATION_ID {
        return Err(foreign());
    }
    match number("user_version").map_err(failed)? {
        VERSION => {}
        VERSION_BEFORE if access == OpenFlags::SQLITE_OPEN_READ_WRITE => return Ok(()),
        found => return Err(OpenError::Version { path: path.to_owned(), found }),
    }
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
