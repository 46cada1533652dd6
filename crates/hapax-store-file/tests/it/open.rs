//! Opening a directory: owners, readers, and refused files, which are left unchanged.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;

use hapax_core::{Caching, Lookup, Promise, Query, Store, StoreError, StoreErrorKind};
use hapax_store_file::{FileStore, OpenError};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::fixture::{Home, acquire, finish, scoped};

fn refused(dir: &Path) -> (StoreErrorKind, String) {
    described(FileStore::open(dir).expect_err("the directory is refused"))
}

fn described(error: StoreError) -> (StoreErrorKind, String) {
    let source = error.source().and_then(|source| source.downcast_ref::<OpenError>());
    (error.kind(), source.expect("the source says what to do").to_string())
}

/// Every file below `dir` with its bytes.
fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect()
}

#[tokio::test]
async fn a_second_owner_is_refused_with_the_process_id_of_the_first() {
    let home = Home::new();
    let store = home.open();
    let (kind, text) = refused(home.path());
    assert_eq!(kind, StoreErrorKind::InUse);
    assert!(text.contains(&format!("in use by process {}", std::process::id())), "{text}");
    assert!(!text.contains("admin"), "{text}");
    // The first one is not affected.
    acquire(&store, "a").await;
    drop(store);
    home.open();
}

#[tokio::test]
async fn a_reader_sees_the_owners_writes() {
    let home = Home::new();
    let store = home.open();
    finish(&store, "a", "first").await;
    let reader = FileStore::options().clock(home.clock.clone()).open_read_only(home.path()).unwrap();
    finish(&store, "b", "second").await;
    for name in ["a", "b"] {
        assert!(matches!(reader.get(&scoped(name).id).await.unwrap(), Lookup::Found { .. }));
    }
    assert_eq!(reader.list(&Query::default()).await.unwrap().records.len(), 2);
    assert_eq!(reader.stats().await.unwrap().completed, 2);
    let health = reader.health().await.unwrap();
    assert_eq!(health.promise, Promise::AtMostOnce);
    assert!(health.warnings.is_empty(), "{health:?}");

    let error = reader.sweep(10).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Invalid);
    assert!(error.source().unwrap().to_string().contains("read-only"));
    let error = reader.claim(&crate::fixture::ask("c")).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Invalid);
    // Opening and closing a reader does not affect the owner.
    drop(reader);
    acquire(&store, "c").await;
}

/// An owner sees every deletion; a reader does not.
#[tokio::test]
async fn only_the_owner_may_cache_without_checks() {
    let home = Home::new();
    let store = home.open();
    assert!(matches!(store.caching(), Caching::Owned(_)));
    let reader = FileStore::options().clock(home.clock.clone()).open_read_only(home.path()).unwrap();
    assert!(matches!(reader.caching(), Caching::Shared));
}

/// How many locks this process holds on the database, as the kernel sees it.
#[cfg(target_os = "linux")]
fn locks(home: &Home) -> usize {
    use std::os::unix::fs::MetadataExt;
    let inode = format!(":{} ", fs::metadata(home.database()).unwrap().ino());
    let pid = format!(" {} ", std::process::id());
    let locks = fs::read_to_string("/proc/locks").unwrap();
    locks
        .lines()
        .filter(|lock| lock.contains("POSIX") && lock.contains(&inode) && lock.contains(&pid))
        .count()
}

/// Without these locks SQLite in another process takes the log for abandoned and deletes it.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn opening_beside_a_reader_of_the_same_process_keeps_the_locks() {
    for lock_file in ["with LOCK", "without LOCK"] {
        let home = Home::new();
        drop(home.open());
        if lock_file == "without LOCK" {
            fs::remove_file(home.path().join("LOCK")).unwrap();
        }
        let reader = FileStore::options().clock(home.clock.clone()).open_read_only(home.path()).unwrap();
        reader.stats().await.unwrap();
        assert!(locks(&home) > 0, "{lock_file}");
        let store = home.open();
        assert!(locks(&home) > 0, "{lock_file}: opening for writing took them");
        finish(&store, "a", "x").await;
        // A refused open must not release them either.
        assert_eq!(refused(home.path()).0, StoreErrorKind::InUse);
        assert!(locks(&home) > 0, "{lock_file}: a second owner took them");
        drop(reader);
        assert!(locks(&home) > 0, "{lock_file}: the reader took them");
    }
}

#[tokio::test]
async fn a_log_with_a_reader_is_not_taken_for_durable() {
    let home = Home::new();
    let store = home.open();
    finish(&store, "a", "x").await;
    let shell = home.shell();
    shell.execute_batch("BEGIN").unwrap();
    let _: i64 = shell.query_row("SELECT count(*) FROM record", [], |row| row.get(0)).unwrap();
    finish(&store, "b", "x").await;
    drop(store);
    let (kind, text) = refused(home.path());
    assert_eq!(kind, StoreErrorKind::InUse);
    assert!(text.contains("keeps its log"), "{text}");
    drop(shell);
    let store = home.open();
    assert!(matches!(store.get(&scoped("b").id).await.unwrap(), Lookup::Found { .. }));
}

#[test]
fn a_reader_does_not_turn_open_claims_uncertain() {
    let home = Home::new();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let store = home.open();
    runtime.block_on(acquire(&store, "a"));
    let reader = FileStore::options().clock(home.clock.clone()).open_read_only(home.path()).unwrap();
    assert_eq!(runtime.block_on(reader.stats()).unwrap().in_progress, 1);
}

#[test]
fn a_missing_store_cannot_be_read() {
    let dir = TempDir::new().unwrap();
    for path in [dir.path().to_owned(), dir.path().join("nowhere")] {
        let (kind, text) = described(FileStore::open_read_only(&path).unwrap_err());
        assert_eq!(kind, StoreErrorKind::Unavailable);
        assert!(text.contains("no store"), "{text}");
    }
    assert!(contents(dir.path()).is_empty());
}

#[cfg(unix)]
#[test]
fn a_missing_directory_is_created_for_its_user_only() {
    use std::os::unix::fs::PermissionsExt;
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("deep").join("er");
    let store = FileStore::open(&path).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o700);
    for name in ["LOCK", "hapax.db", "hapax.db-wal"] {
        assert_eq!(mode(&path.join(name)), 0o600, "{name}");
    }
    drop(store);
}

#[test]
fn a_file_in_place_of_the_directory_is_refused() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("file");
    fs::write(&path, "mine").unwrap();
    for path in [path.clone(), path.join("below")] {
        let (kind, text) = refused(&path);
        assert_eq!(kind, StoreErrorKind::Unavailable);
        assert!(text.contains("not a directory"), "{text}");
    }
    assert_eq!(fs::read(&path).unwrap(), b"mine");
}

#[cfg(target_os = "linux")]
#[test]
fn a_directory_that_cannot_be_created_is_refused() {
    let (kind, text) = refused(Path::new("/proc/hapax-data"));
    assert_eq!(kind, StoreErrorKind::Unavailable);
    assert!(text.contains("/proc/hapax-data") && text.contains("read-only"), "{text}");
}

#[test]
fn a_foreign_file_is_refused_unchanged() {
    type Make = fn(&Path);
    let foreign: [(&str, Make); 4] = [
        ("text", |path| fs::write(path, "no database at all, but long enough ".repeat(20)).unwrap()),
        ("empty", |path| fs::write(path, "").unwrap()),
        ("another program's database", |path| {
            Connection::open(path).unwrap().execute_batch("CREATE TABLE theirs (a)").unwrap();
        }),
        ("another program's database with a log", |path| {
            let theirs = Connection::open(path).unwrap();
            theirs.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE theirs (a)").unwrap();
        }),
    ];
    for (name, make) in foreign {
        let dir = TempDir::new().unwrap();
        make(&dir.path().join("hapax.db"));
        let before = contents(dir.path());
        let (kind, text) = refused(dir.path());
        assert_eq!(kind, StoreErrorKind::Incompatible, "{name}");
        assert!(text.contains("hapax.db"), "{text}");
        assert_eq!(contents(dir.path()), before, "{name}");
        let (kind, _) = described(FileStore::open_read_only(dir.path()).unwrap_err());
        assert_eq!(kind, StoreErrorKind::Incompatible, "{name}, read-only");
    }
}

/// SQLite's log from a crash of another program is left to that program.
#[test]
fn a_foreign_log_is_not_checkpointed() {
    let made = TempDir::new().unwrap();
    let theirs = Connection::open(made.path().join("hapax.db")).unwrap();
    theirs.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE theirs (a)").unwrap();
    let dir = TempDir::new().unwrap();
    for name in ["hapax.db", "hapax.db-wal"] {
        fs::copy(made.path().join(name), dir.path().join(name)).unwrap();
    }
    let before = contents(dir.path());
    assert!(!before["hapax.db-wal"].is_empty());
    assert_eq!(refused(dir.path()).0, StoreErrorKind::Incompatible);
    let after = contents(dir.path());
    for name in ["hapax.db", "hapax.db-wal"] {
        assert_eq!(after[name], before[name], "{name}");
    }
    assert!(!after.contains_key("LOCK"));
}

#[test]
fn another_version_is_refused_unchanged() {
    let home = Home::new();
    drop(home.open());
    home.shell().pragma_update(None, "user_version", 1).unwrap();
    let before = contents(home.path());
    let (kind, text) = refused(home.path());
    assert_eq!(kind, StoreErrorKind::Incompatible);
    assert!(text.contains("version 4") && text.contains("version 1"), "{text}");
    let (kind, _) = described(FileStore::open_read_only(home.path()).unwrap_err());
    assert_eq!(kind, StoreErrorKind::Incompatible);
    assert_eq!(contents(home.path())["hapax.db"], before["hapax.db"]);
}

#[test]
fn a_truncated_database_is_refused() {
    let home = Home::new();
    drop(home.open());
    for bytes in [0, 50, 5000] {
        fs::File::options().write(true).open(home.database()).unwrap().set_len(bytes).unwrap();
        let (kind, _) = refused(home.path());
        assert_eq!(kind, StoreErrorKind::Incompatible, "cut to {bytes}");
    }
}

#[test]
fn a_log_without_its_database_is_refused() {
    let home = Home::new();
    drop(home.open());
    fs::rename(home.database(), home.path().join("hapax.db-wal")).unwrap();
    let (kind, text) = refused(home.path());
    assert_eq!(kind, StoreErrorKind::Incompatible);
    assert!(text.contains("missing while other files of the store exist"), "{text}");
    assert!(!home.database().exists());
}

#[test]
fn a_write_ahead_log_without_its_database_is_refused() {
    let home = Home::new();
    drop(home.open());
    fs::rename(home.database(), home.path().join("hapax.journal")).unwrap();
    let (kind, text) = refused(home.path());
    assert_eq!(kind, StoreErrorKind::Incompatible);
    assert!(text.contains("missing while other files of the store exist"), "{text}");
    assert!(!home.database().exists());
}

#[test]
fn an_unfinished_database_is_created_again() {
    let home = Home::new();
    fs::write(home.path().join("hapax.db.new"), "half a database").unwrap();
    drop(home.open());
    assert!(home.database().exists());
    assert!(!home.path().join("hapax.db.new").exists());
}

#[tokio::test]
async fn a_store_without_sync_is_best_effort() {
    let home = Home::new();
    let health = home.open().health().await.unwrap();
    assert_eq!((health.store, health.promise), ("file", Promise::AtMostOnce));
    assert!(health.warnings.is_empty(), "{health:?}");
    let store = FileStore::options().danger_no_sync().open(home.path()).unwrap();
    let health = store.health().await.unwrap();
    assert_eq!(health.promise, Promise::BestEffort);
    assert!(health.warnings.iter().any(|warning| warning.contains("syncing is off")), "{health:?}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_store_on_tmpfs_is_best_effort() {
    const IN_MEMORY: &str = "/dev/shm";
    let dir = TempDir::new_in(IN_MEMORY).expect("this test needs a tmpfs at /dev/shm");
    let health = FileStore::open(dir.path()).unwrap().health().await.unwrap();
    assert_eq!(health.promise, Promise::BestEffort);
    assert!(health.warnings.iter().any(|warning| warning.contains("tmpfs")), "{health:?}");
}

#[test]
fn a_database_without_its_indexes_is_refused() {
    let home = Home::new();
    drop(home.open());
    home.shell().execute_batch("DROP TABLE leaf").unwrap();
    let (kind, _) = refused(home.path());
    assert_eq!(kind, StoreErrorKind::Incompatible);
}
