//! The database file: how it is made, told apart from others, and set up for a connection.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::config::Sync;
use crate::error::OpenError;

/// The version of the layout that this crate reads and writes; SQLite's `user_version`.
pub(crate) const VERSION: u32 = 1;
/// Says whose file this is, to us and to `file(1)`; SQLite's `application_id`: "HAPX".
const APPLICATION_ID: u32 = 0x4841_5058;
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Counts what a store cannot do without: a lookup without its index would be right, and hopelessly slow.
const PARTS: &str = "SELECT count(*) FROM sqlite_schema WHERE name IN \
                     ('record', 'outcome', 'meta', 'record_by_hash', 'record_by_state')";

/// How large the log grows before its pages are moved into the database, in pages of 4 KiB: 32 MiB. A page that
/// changes often is then moved once instead of many times, and recovery still takes well under a second.
const CHECKPOINT_PAGES: u32 = 8_000;
/// How much of the database a connection keeps in memory at most, in KiB. The upper levels of the index by hash
/// of several million records fit; its leaves are the operating system's to keep.
const WRITER_CACHE_KIB: u32 = 65_536;
const READER_CACHE_KIB: u32 = 4_096;
/// The most pages that SQLite counts.
const PAGES_MAX: u64 = 0xFFFF_FFFE;
/// More statements than this crate has.
const STATEMENTS_MAX: usize = 64;
/// How long a person's own transaction on the file is waited for.
const BUSY_WAIT: Duration = Duration::from_secs(5);

/// Checks the first bytes of a file without giving it to the engine, which might change it.
pub(crate) fn check_header(header: &[u8; 100], path: &Path) -> Result<(), OpenError> {
    let number = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    // The offsets are those of SQLite's file format.
    let (user_version, application_id) = (number(60), number(68));
    if !header.starts_with(MAGIC) || application_id != APPLICATION_ID {
        return Err(OpenError::Foreign { path: path.to_owned() });
    }
    check_version(user_version, path)
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
pub(crate) fn connect_writer(
    path: &Path,
    sync: Sync,
    size_max: Option<u64>,
) -> Result<Connection, OpenError> {
    let connect = || {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        set_up(&connection, WRITER_CACHE_KIB)?;
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
        let level = match sync {
            Sync::Full => "FULL",
            Sync::Off => "OFF",
        };
        connection.pragma_update(None, "synchronous", level)?;
        // Where a plain sync leaves the bytes in the drive's own memory.
        connection.pragma_update(None, "fullfsync", true)?;
        connection.pragma_update(None, "checkpoint_fullfsync", true)?;
        connection.pragma_update_and_check(None, "wal_autocheckpoint", CHECKPOINT_PAGES, |_| Ok(()))?;
        if let Some(bytes) = size_max {
            let page_bytes: u32 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
            let pages = (bytes / u64::from(page_bytes)).clamp(1, PAGES_MAX);
            let pages = u32::try_from(pages).expect("PAGES_MAX fits");
            connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?;
        }
        Ok(connection)
    };
    let connection = connect().map_err(|source| engine(path, source))?;
    check_connection(&connection, path)?;
    Ok(connection)
}

/// A connection that only reads.
pub(crate) fn connect_reader(path: &Path) -> Result<Connection, OpenError> {
    let connect = || {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        set_up(&connection, READER_CACHE_KIB)?;
        Ok(connection)
    };
    let connection = connect().map_err(|source| engine(path, source))?;
    check_connection(&connection, path)?;
    Ok(connection)
}

/// Moves what it can from the log into the database, so that the log can start again from its beginning.
pub(crate) fn shorten_log(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
}

/// Moves what a crash or a failed sync left in the log into the database.
///
/// After a failed sync the operating system may show bytes of the log that the disk does not have, and a second
/// sync would not write them. Copied into the database they are written anew.
pub(crate) fn make_log_durable(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

fn set_up(connection: &Connection, cache_kib: u32) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_WAIT)?;
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
    if number("application_id").map_err(|source| engine(path, source))? != APPLICATION_ID {
        return Err(OpenError::Foreign { path: path.to_owned() });
    }
    check_version(number("user_version").map_err(|source| engine(path, source))?, path)?;
    let parts: i64 =
        connection.query_row(PARTS, [], |row| row.get(0)).map_err(|source| engine(path, source))?;
    if parts == 5 { Ok(()) } else { Err(OpenError::Foreign { path: path.to_owned() }) }
}

fn engine(path: &Path, source: rusqlite::Error) -> OpenError {
    OpenError::Engine { path: path.to_owned(), source }
}
