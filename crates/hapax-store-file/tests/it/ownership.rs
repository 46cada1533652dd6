//! Ownership of a store whose files are deleted, replaced or moved.

use std::error::Error;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use hapax_core::{Claim, Lookup, Store, StoreError, StoreErrorKind};
use hapax_store_file::{FileStore, OpenError};
use tempfile::TempDir;

use crate::fixture::{Home, acquire, ask, finish, scoped};

fn cause(error: &StoreError) -> String {
    error.source().expect("the error has a source").to_string()
}

#[tokio::test]
async fn a_deleted_lock_file_admits_no_second_owner() {
    let home = Home::new();
    let store = home.open();
    fs::remove_file(home.path().join("LOCK")).unwrap();
    let error = FileStore::open(home.path()).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::InUse);
    assert!(!home.path().join("LOCK").exists());
    // The owner and readers go on.
    acquire(&store, "a").await;
    let reader = FileStore::options().clock(home.clock.clone()).open_read_only(home.path()).unwrap();
    assert!(matches!(reader.get(&scoped("a").id).await.unwrap(), Lookup::Found { .. }));
    drop((store, reader));
    acquire(&home.open(), "b").await;
}

#[test]
fn an_earlier_version_that_holds_the_lock_file_is_the_owner() {
    let home = Home::new();
    drop(home.open());
    let lock = File::open(home.path().join("LOCK")).unwrap();
    lock.lock().unwrap();
    assert_eq!(FileStore::open(home.path()).unwrap_err().kind(), StoreErrorKind::InUse);
    drop(lock);
    home.open();
}

/// A store in a subdirectory, so that the test can move it.
fn store_below(home: &Home) -> (PathBuf, FileStore) {
    let dir = home.path().join("data");
    let store = FileStore::options().clock(home.clock.clone()).open(&dir).unwrap();
    (dir, store)
}

async fn stops(store: &FileStore, name: &str) {
    let error = store.claim(&ask("b")).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Stopped, "{name}");
    assert!(
        cause(&error).contains(name) && cause(&error).contains("removed or replaced"),
        "{}",
        cause(&error)
    );
    // From then on reads fail too.
    for error in [store.claim(&ask("c")).await.unwrap_err(), store.get(&scoped("a").id).await.unwrap_err()] {
        assert_eq!(error.kind(), StoreErrorKind::Stopped, "{name}");
        assert!(cause(&error).contains("removed or replaced"), "{name}: {}", cause(&error));
    }
}

#[cfg(unix)]
#[tokio::test]
async fn an_owner_whose_files_are_replaced_stops() {
    for name in ["hapax.db", "hapax.db-wal", "hapax.journal"] {
        let home = Home::new();
        let (dir, store) = store_below(&home);
        finish(&store, "a", "x").await;
        let path = dir.join(name);
        fs::rename(&path, dir.join("elsewhere")).unwrap();
        fs::copy(dir.join("elsewhere"), &path).unwrap();
        stops(&store, name).await;
    }
}

#[cfg(unix)]
#[tokio::test]
async fn an_owner_whose_directory_is_moved_away_stops() {
    let home = Home::new();
    let (dir, store) = store_below(&home);
    finish(&store, "a", "x").await;
    fs::rename(&dir, home.path().join("moved")).unwrap();
    // Another owner may use the path now.
    let other = FileStore::options().clock(home.clock.clone()).open(&dir).unwrap();
    assert!(matches!(other.claim(&ask("b")).await.unwrap(), Claim::Acquired(_)));
    stops(&store, "data").await;
    drop(store);
    // The stopped owner does not change the new one's files.
    assert!(dir.join("hapax.journal").exists());
    acquire(&other, "c").await;
}

#[cfg(unix)]
#[test]
fn a_world_writable_directory_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let dir = TempDir::new().unwrap();
    let set = |mode| fs::set_permissions(dir.path(), fs::Permissions::from_mode(mode)).unwrap();
    for mode in [0o777, 0o1777, 0o702] {
        set(mode);
        let error = FileStore::open(dir.path()).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{mode:o}");
        assert!(cause(&error).contains("every user of this machine may write"), "{}", cause(&error));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "{mode:o}");
    }
    set(0o770);
    drop(FileStore::open(dir.path()).unwrap());
    set(0o777);
    assert_eq!(FileStore::open_read_only(dir.path()).unwrap_err().kind(), StoreErrorKind::Unavailable);
    // A directory in it is created for one user only.
    drop(FileStore::open(dir.path().join("data")).unwrap());
}

#[cfg(unix)]
#[test]
fn a_symbolic_link_in_the_directory_is_refused() {
    for name in ["hapax.db", "hapax.db-wal", "hapax.db-shm", "hapax.db.new", "hapax.journal", "LOCK"] {
        let (dir, elsewhere) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let target = elsewhere.path().join("target");
        std::os::unix::fs::symlink(&target, dir.path().join(name)).unwrap();
        for opened in [FileStore::open(dir.path()), FileStore::open_read_only(dir.path())] {
            let error = opened.unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{name}");
            let open_error = error.source().and_then(|cause| cause.downcast_ref::<OpenError>());
            assert!(matches!(open_error, Some(OpenError::SymbolicLink { .. })), "{name}: {open_error:?}");
        }
        assert!(!target.exists(), "{name}");
    }
}

/// The directory itself may be one, to put data on another disk.
#[cfg(unix)]
#[test]
fn a_symbolic_link_to_the_directory_is_followed() {
    let dir = TempDir::new().unwrap();
    fs::create_dir(dir.path().join("disk")).unwrap();
    let link: &Path = &dir.path().join("data");
    std::os::unix::fs::symlink(dir.path().join("disk"), link).unwrap();
    drop(FileStore::open(link).unwrap());
    assert!(dir.path().join("disk/hapax.db").exists());
}
