//! The directory of a journal: its lock, and files that only their owner reads.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::journal::JournalError;

/// The file that the owner keeps locked.
const LOCK: &str = "LOCK";

pub(super) fn lock(directory: &Path) -> Result<File, JournalError> {
    let path = directory.join(LOCK);
    let file = private().write(true).create(true).truncate(false).open(&path);
    let file = file.map_err(|source| failed("open", &path, source))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(JournalError::InUse { directory: directory.to_owned() }),
        Err(TryLockError::Error(source)) => Err(failed("lock", &path, source)),
    }
}

/// Options of files that only their owner reads.
pub(super) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Creates a directory with those above it, so that they are on disk.
pub(super) fn create_private(directory: &Path) -> Result<(), JournalError> {
    let holders = holders_of_new(directory);
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory).map_err(|source| failed("create", directory, source))?;
    for holder in holders.iter().filter(|_| cfg!(unix)) {
        let sync = File::open(holder).and_then(|holder| holder.sync_all());
        sync.map_err(|source| failed("sync", holder, source))?;
    }
    Ok(())
}

/// The directories that get a new name when this one is created: a name is on disk when the directory that holds it is.
fn holders_of_new(directory: &Path) -> Vec<PathBuf> {
    let missing = directory.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists());
    let holder = |path: &Path| match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    missing.map(holder).collect()
}

pub(super) fn failed(operation: &'static str, path: &Path, source: io::Error) -> JournalError {
    JournalError::Io { operation, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directories_with_a_new_name_are_synced() {
        let parent = tempfile::TempDir::new().unwrap();
        let journal = parent.path().join("a/journal");
        assert_eq!(holders_of_new(&journal), [parent.path().join("a"), parent.path().to_owned()]);
        create_private(&journal).unwrap();
        assert!(holders_of_new(&journal).is_empty());
        assert_eq!(holders_of_new(Path::new("no-such-journal")), [PathBuf::from(".")]);
    }
}
