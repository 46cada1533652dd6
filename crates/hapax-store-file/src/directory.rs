//! The directory of a store: its access rights, its files, and its file system.
//!
//! Knows files, not records. A refused directory is left exactly as it was found.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use crate::config::NetworkPolicy;
use crate::error::OpenError;
use crate::ownership::{self, LOCK, OpenedFiles, Ownership};
use crate::schema;

/// The database.
const DATABASE: &str = "hapax.db";
/// The database while it is created; never opened as a store.
const DATABASE_NEW: &str = "hapax.db.new";
/// The write-ahead log.
const WAL: &str = "hapax.journal";

/// The paths of a store.
#[derive(Clone, Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    file_system: FileSystem,
}

/// The kind of file system that a directory is on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FileSystem {
    /// No known problem.
    Usual,
    /// Served by a program, from a local disk or over a network.
    Fuse,
    /// Locks and syncs are not reliable.
    Network(&'static str),
    /// In memory: synced data is lost when the machine stops.
    Volatile(&'static str),
}

impl Directory {
    /// The store in `path`, which must exist.
    pub(crate) fn existing(path: &Path, network: NetworkPolicy) -> Result<Self, OpenError> {
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Err(OpenError::NotADirectory { path: path.to_owned() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(OpenError::Missing { path: path.to_owned() });
            }
            Err(source) => return Err(inaccessible(path, source)),
        }
        let directory = Self::at(path, network)?;
        directory.refuse_exposed()?;
        if !directory.database().exists() {
            // If other files are there, the store is incomplete, not missing.
            directory.has_database()?;
            return Err(OpenError::Missing { path: path.to_owned() });
        }
        Ok(directory)
    }

    /// The store in `path`, created if it is missing, and owned by the caller.
    pub(crate) fn owned(path: &Path, network: NetworkPolicy) -> Result<(Self, Ownership), OpenError> {
        let directory = Self::at(path, network)?;
        directory.create()?;
        directory.refuse_exposed()?;
        let mut ownership = Ownership::take(&directory.path)?;
        if !directory.has_database()? {
            directory.create_database()?;
        } else if !directory.path.join(LOCK).exists() {
            // It was never owned by us: check it before a file of ours is written beside it.
            directory.refuse_foreign()?;
        }
        // Only now: the file shows that there was a database.
        ownership.write_pid(&directory.path)?;
        Ok((directory, ownership))
    }

    fn at(path: &Path, network: NetworkPolicy) -> Result<Self, OpenError> {
        // Absolute, because the process may change its working directory.
        let path = &std::path::absolute(path).map_err(|source| inaccessible(path, source))?;
        let file_system = file_system_of(path)?;
        match (file_system, network) {
            (FileSystem::Network(file_system), NetworkPolicy::Refuse) => {
                Err(OpenError::Network { path: path.to_owned(), file_system })
            }
            _ => Ok(Self { path: path.to_owned(), file_system }),
        }
    }

    /// A warning about the file system.
    pub(crate) fn warning(&self) -> Option<String> {
        match self.file_system {
            FileSystem::Usual => None,
            FileSystem::Fuse => Some(
                "the directory lies on a FUSE file system; check that it is a local one: the locks and syncs of sshfs, s3fs \
                 and the like are not reliable"
                    .to_owned(),
            ),
            FileSystem::Network(name) => Some(format!(
                "the directory lies on {name}, a network file system with unreliable locks and syncs"
            )),
            FileSystem::Volatile(name) => Some(format!(
                "the directory lies on {name}, which is in memory: when the machine or the container stops, all records are \
                 lost and their operations run again; use a directory on a disk"
            )),
        }
    }

    /// Whether synced data survives a stop of the machine.
    pub(crate) fn is_durable(&self) -> bool {
        matches!(self.file_system, FileSystem::Usual | FileSystem::Fuse)
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.path.join(DATABASE)
    }

    pub(crate) fn wal(&self) -> PathBuf {
        self.path.join(WAL)
    }

    /// Opens the write-ahead log, or creates it.
    pub(crate) fn open_wal(&self) -> Result<File, OpenError> {
        let path = self.wal();
        let file = private_file().create(true).truncate(false).open(&path);
        file.map_err(|source| inaccessible(&path, source))
    }

    /// Fsyncs the directory, and with it the names of its files.
    pub(crate) fn sync(&self) -> Result<(), OpenError> {
        sync_directory(&self.path).map_err(|source| inaccessible(&self.path, source))
    }

    /// Whether a process owns the store.
    pub(crate) fn is_owned(&self) -> bool {
        ownership::is_owned(&self.path)
    }

    /// The files of the open store.
    pub(crate) fn opened_files(&self) -> Result<OpenedFiles, OpenError> {
        let files = [self.path.clone(), self.database(), self.beside("-wal"), self.wal()];
        OpenedFiles::of(files).map_err(|source| inaccessible(&self.path, source))
    }

    /// Bytes of the write-ahead log.
    pub(crate) fn wal_bytes(&self) -> u64 {
        fs::metadata(self.wal()).map_or(0, |found| found.len())
    }

    /// Bytes of SQLite's log.
    pub(crate) fn sqlite_log_bytes(&self) -> u64 {
        schema::log_bytes(&self.database())
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        self.path.join(format!("{DATABASE}{suffix}"))
    }

    fn create(&self) -> Result<(), OpenError> {
        match fs::metadata(&self.path) {
            Ok(found) if found.is_dir() => Ok(()),
            Ok(_) => Err(OpenError::NotADirectory { path: self.path.clone() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                create_directories(&self.path).map_err(|source| inaccessible(&self.path, source))
            }
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                Err(OpenError::NotADirectory { path: self.path.clone() })
            }
            Err(source) => Err(inaccessible(&self.path, source)),
        }
    }

    /// Whether there is a database. It is created under another name and renamed when complete, so a file of another kind
    /// is not ours, and a truncated or empty one is damage, not a new store.
    ///
    /// Only SQLite opens it: on Unix closing any handle of a file releases all locks that the process holds on it, also
    /// those of SQLite for an open store.
    fn has_database(&self) -> Result<bool, OpenError> {
        let path = self.database();
        match path.try_exists() {
            Ok(false) if self.has_others() => Err(OpenError::Incomplete { path }),
            Ok(found) => Ok(found),
            Err(source) => Err(inaccessible(&path, source)),
        }
    }

    /// Whether there are files that exist only beside a database.
    fn has_others(&self) -> bool {
        [self.beside("-wal"), self.wal(), self.path.join(LOCK)].iter().any(|path| path.exists())
    }

    /// Refuses a directory in which other users can replace our files, and symbolic links in it: the files that are checked,
    /// locked and synced must be the files that are used.
    fn refuse_exposed(&self) -> Result<(), OpenError> {
        if is_writable_by_all(&self.path).map_err(|source| inaccessible(&self.path, source))? {
            return Err(OpenError::WritableByAll { path: self.path.clone() });
        }
        let files = [self.database(), self.beside("-wal"), self.beside("-shm"), self.beside(".new")];
        let others = [self.wal(), self.path.join(LOCK)];
        for path in files.into_iter().chain(others) {
            if fs::symlink_metadata(&path).is_ok_and(|found| found.file_type().is_symlink()) {
                return Err(OpenError::SymbolicLink { path });
            }
        }
        Ok(())
    }

    fn refuse_foreign(&self) -> Result<(), OpenError> {
        let path = self.database();
        // A database of ours has no rollback journal. SQLite would apply this one to the file to read it.
        if self.beside("-journal").exists() {
            return Err(OpenError::Foreign { path });
        }
        schema::check(&path)
    }

    fn create_database(&self) -> Result<(), OpenError> {
        let new = self.path.join(DATABASE_NEW);
        let failed = |source| inaccessible(&new, source);
        match fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        private_file().create_new(true).open(&new).map_err(failed)?;
        schema::create(&new)?;
        File::open(&new).and_then(|file| file.sync_all()).map_err(failed)?;
        fs::rename(&new, self.database()).map_err(failed)?;
        sync_directory(&self.path).map_err(failed)
    }
}

#[cfg(target_os = "linux")]
fn file_system_of(path: &Path) -> Result<FileSystem, OpenError> {
    let existing = path.ancestors().find(|path| path.exists()).unwrap_or(Path::new("."));
    let found = rustix::fs::statfs(existing).map_err(|error| inaccessible(existing, error.into()))?;
    Ok(FileSystem::numbered(found.f_type as u32))
}

#[cfg(not(target_os = "linux"))]
fn file_system_of(_path: &Path) -> Result<FileSystem, OpenError> {
    Ok(FileSystem::Usual)
}

#[cfg(target_os = "linux")]
impl FileSystem {
    /// The file system with this number in `statfs`; the numbers are those of `linux/magic.h`.
    const fn numbered(magic: u32) -> Self {
        match magic {
            0x6969 => Self::Network("NFS"),
            0x517B => Self::Network("SMB"),
            0xFF53_4D42 => Self::Network("CIFS"),
            0xFE53_4D42 => Self::Network("SMB2"),
            0x0102_1997 => Self::Network("9p"),
            0x5346_414F => Self::Network("AFS"),
            0x00C3_6400 => Self::Network("Ceph"),
            0x0102_1994 => Self::Volatile("tmpfs"),
            0x8584_58F6 => Self::Volatile("ramfs"),
            // Also virtiofs.
            0x6573_5546 => Self::Fuse,
            _ => Self::Usual,
        }
    }
}

/// Creates the directory and its missing parents, each synced into its parent.
fn create_directories(path: &Path) -> io::Result<()> {
    let parent = match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => return Err(io::ErrorKind::NotFound.into()),
    };
    if !parent.exists() {
        create_directories(parent)?;
    }
    match create_private_directory(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    sync_directory(parent)
}

#[cfg(unix)]
fn create_private_directory(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().mode(0o700).create(path)
}

#[cfg(not(unix))]
fn create_private_directory(path: &Path) -> io::Result<()> {
    fs::create_dir(path)
}

#[cfg(unix)]
pub(crate) fn private_file() -> OpenOptions {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options
}

#[cfg(not(unix))]
pub(crate) fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    options
}

/// A new name in a directory is durable only when the directory is synced.
fn sync_directory(path: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(path)?.sync_all() } else { Ok(()) }
}

#[cfg(unix)]
fn is_writable_by_all(path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::PermissionsExt;
    Ok(fs::metadata(path)?.permissions().mode() & 0o002 != 0)
}

#[cfg(not(unix))]
fn is_writable_by_all(_path: &Path) -> io::Result<bool> {
    Ok(false)
}

fn inaccessible(path: &Path, source: io::Error) -> OpenError {
    OpenError::Inaccessible { path: path.to_owned(), source }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn file_systems_are_known_by_number() {
        assert_eq!(FileSystem::numbered(0x6969), FileSystem::Network("NFS"));
        assert_eq!(FileSystem::numbered(0xFF53_4D42), FileSystem::Network("CIFS"));
        assert_eq!(FileSystem::numbered(0x0102_1997), FileSystem::Network("9p"));
        assert_eq!(FileSystem::numbered(0x6573_5546), FileSystem::Fuse);
        assert_eq!(FileSystem::numbered(0x0102_1994), FileSystem::Volatile("tmpfs"));
        assert_eq!(FileSystem::numbered(0x8584_58F6), FileSystem::Volatile("ramfs"));
        // ext4.
        assert_eq!(FileSystem::numbered(0xEF53), FileSystem::Usual);
    }

    #[test]
    fn unreliable_file_systems_give_a_warning() {
        let warning = |file_system| Directory { path: PathBuf::new(), file_system }.warning();
        assert_eq!(warning(FileSystem::Usual), None);
        assert!(warning(FileSystem::Fuse).is_some_and(|text| text.contains("FUSE")));
        assert!(warning(FileSystem::Network("NFS")).is_some_and(|text| text.contains("NFS")));
    }
}
