//! [`Written`]: a log that is on disk as a whole, as a process begins with it or after a rewrite.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use super::files::{failed, private};
use super::head::{self, Head};
use super::{LOG, NEW_LOG};
use crate::journal::JournalError;
use crate::journal::frame::{self, Event};
use crate::journal::stored::StoredCall;

/// A file of which every byte is on disk.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) file: File,
    pub(super) head_file: File,
    pub(super) seed: u32,
    pub(super) size: u64,
    /// Whether its name is on disk.
    pub(super) named: Result<(), JournalError>,
}

/// Opens a file that is continued as it is.
pub(super) fn open_clean(path: &Path, seed: u32, size: u64) -> Result<Written, JournalError> {
    let open = || -> io::Result<(File, File)> {
        let file = private().append(true).open(path)?;
        let head_file = private().write(true).open(path)?;
        // Its last process may have been killed before a sync. The head names no byte that is not on disk.
        file.sync_data()?;
        Head { seed, synced: size }.write(&head_file)?;
        file.sync_data()?;
        Ok((file, head_file))
    };
    let (file, head_file) = open().map_err(|source| failed("open", path, source))?;
    Ok(Written { file, head_file, seed, size, named: Ok(()) })
}

/// Writes a log with these calls, and puts it in the place of the old one.
pub(super) fn write_new<'a>(
    directory: &Path,
    calls: impl Iterator<Item = (u64, &'a StoredCall, bool)>,
) -> Result<Written, JournalError> {
    let (path, new) = (directory.join(LOG), directory.join(NEW_LOG));
    let seed = getrandom::u32().map_err(|error| failed("seed", &new, io::Error::other(error)))?;
    let mut bytes = vec![0; head::LENGTH];
    for (id, call, is_uncertain) in calls {
        let opened = Event::Opened { id, call: call.head() };
        bytes.extend(frame::encode(seed, 0, &opened, call.body()));
        if is_uncertain {
            bytes.extend(frame::encode(seed, 0, &Event::Uncertain { id }, &[]));
        }
    }
    let size = bytes.len() as u64;
    // The file has its name only when it is on disk as a whole.
    bytes[..head::LENGTH].copy_from_slice(&Head { seed, synced: size }.encode());
    let write = || -> io::Result<(File, File, Option<File>)> {
        // All that may be missing is opened before the rename: after it, appends to the old file would be lost.
        let names = if cfg!(unix) { Some(File::open(directory)?) } else { None };
        let mut file = private().append(true).create(true).open(&new)?;
        file.set_len(0)?;
        let head_file = private().write(true).open(&new)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        fs::rename(&new, &path)?;
        Ok((file, head_file, names))
    };
    let (file, head_file, names) = write().map_err(|source| failed("write", &new, source))?;
    // The new name is on disk when its directory is.
    let named = names.map_or(Ok(()), |names| names.sync_all());
    let named = named.map_err(|source| failed("sync", directory, source));
    Ok(Written { file, head_file, seed, size, named })
}
