//! [`Disk`]: a disk with a volatile cache, and the images that a power loss leaves of it.
//!
//! The shim's trace holds every write and every sync in order. Applying it up to any point gives a [`Disk`];
//! [`Disk::lose_power`] makes one of the many images that a real disk could hold then: everything synced, and any part
//! of the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use hapax_testkit::Random;

/// Bytes that a disk writes whole or not at all.
const SECTOR: u64 = 512;

/// One entry of a trace; paths are relative to the watched directory.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum DiskEvent {
    Write { path: PathBuf, offset: u64, data: Vec<u8> },
    Truncate { path: PathBuf, length: u64 },
    Sync(PathBuf),
    FailedSync(PathBuf),
    Create(PathBuf),
    MakeDir(PathBuf),
    Rename { from: PathBuf, to: PathBuf },
    Unlink(PathBuf),
    Output(String),
}

/// Reads a trace of changes below `root`. An incomplete last entry is left out.
pub fn read_trace(trace: &Path, root: &Path) -> Result<Vec<DiskEvent>> {
    let bytes = fs::read(trace)?;
    let mut rest = &bytes[..];
    let mut events = Vec::new();
    while let Some((raw, after)) = raw_event(rest) {
        rest = after;
        // Writes to an unlinked file have no effect.
        if !raw.path.ends_with(b" (deleted)") {
            events.extend(raw.parse(root)?);
        }
    }
    Ok(events)
}

struct RawEvent<'a> {
    kind: u8,
    path: &'a [u8],
    offset: u64,
    data: &'a [u8],
}

fn raw_event(bytes: &[u8]) -> Option<(RawEvent<'_>, &[u8])> {
    let (&kind, rest) = bytes.split_first()?;
    let (path_length, rest) = rest.split_first_chunk()?;
    let (offset, rest) = rest.split_first_chunk()?;
    let (data_length, rest) = rest.split_first_chunk()?;
    let (path, rest) = rest.split_at_checked(u32::from_ne_bytes(*path_length) as usize)?;
    let (data, rest) = rest.split_at_checked(u64::from_ne_bytes(*data_length) as usize)?;
    Some((RawEvent { kind, path, offset: u64::from_ne_bytes(*offset), data }, rest))
}

impl RawEvent<'_> {
    fn parse(self, root: &Path) -> Result<Option<DiskEvent>> {
        let relative = |bytes| -> Result<PathBuf> {
            let path = Path::new(OsStr::from_bytes(bytes));
            Ok(path.strip_prefix(root).context("the trace names a file elsewhere")?.to_owned())
        };
        if self.kind == b'N' {
            return Ok(Some(DiskEvent::Output(String::from_utf8_lossy(self.data).into_owned())));
        }
        let path = relative(self.path)?;
        Ok(Some(match self.kind {
            b'W' => DiskEvent::Write { path, offset: self.offset, data: self.data.to_vec() },
            b'T' => DiskEvent::Truncate { path, length: self.offset },
            b'S' => DiskEvent::Sync(path),
            b'E' => DiskEvent::FailedSync(path),
            b'C' => DiskEvent::Create(path),
            b'D' => DiskEvent::MakeDir(path),
            b'R' => DiskEvent::Rename { from: path, to: relative(self.data)? },
            b'U' => DiskEvent::Unlink(path),
            kind => anyhow::bail!("the trace holds an entry of unknown kind {kind}"),
        }))
    }
}

/// A disk with a volatile cache.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    files: Vec<File>,
    dirs: BTreeSet<PathBuf>,
    /// Names as the process sees them.
    names: BTreeMap<PathBuf, usize>,
    /// Names that survive every power loss, and the changes since, of which a prefix survives.
    durable_names: BTreeMap<PathBuf, usize>,
    renamed: Vec<NameChange>,
}

#[derive(Clone, Debug, Default)]
struct File {
    durable: Vec<u8>,
    unsynced: Vec<Change>,
}

#[derive(Clone, Debug)]
enum Change {
    Write { offset: u64, data: Vec<u8> },
    Truncate(u64),
}

#[derive(Clone, Debug)]
enum NameChange {
    Rename { from: PathBuf, to: PathBuf },
    Unlink(PathBuf),
}

/// How much of the unsynced changes survives.
#[derive(Clone, Copy, Debug)]
enum Survival {
    Nothing,
    Everything,
    /// Any subset of sectors: a disk may write its cache in any order.
    Sectors,
}

impl Disk {
    /// A disk with the contents of `dir`, all synced.
    pub fn load(dir: &Path) -> Result<Self> {
        let mut disk = Self::default();
        disk.dirs.insert(PathBuf::new());
        disk.load_below(dir, Path::new(""))?;
        disk.durable_names.clone_from(&disk.names);
        Ok(disk)
    }

    fn load_below(&mut self, root: &Path, below: &Path) -> Result<()> {
        for entry in fs::read_dir(root.join(below))? {
            let entry = entry?;
            let name = below.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                self.dirs.insert(name.clone());
                self.load_below(root, &name)?;
            } else if !name.as_os_str().as_bytes().ends_with(b"-shm") {
                self.names.insert(name, self.files.len());
                self.files.push(File { durable: fs::read(entry.path())?, unsynced: Vec::new() });
            }
        }
        Ok(())
    }

    /// Applies one event. `random` decides what a failed sync left on the disk.
    pub fn apply(&mut self, event: &DiskEvent, random: &mut Random) {
        match event {
            DiskEvent::Write { path, offset, data } => {
                let change = Change::Write { offset: *offset, data: data.clone() };
                self.file(path).unsynced.push(change);
            }
            DiskEvent::Truncate { path, length } => self.file(path).unsynced.push(Change::Truncate(*length)),
            DiskEvent::Sync(path) if self.dirs.contains(path) => self.sync_names(),
            DiskEvent::Sync(path) => self.file(path).settle(Survival::Everything, random),
            // As on Linux, the pages count as clean from now on, whether or not they were written.
            DiskEvent::FailedSync(path) if self.dirs.contains(path) => {}
            DiskEvent::FailedSync(path) => self.file(path).settle(Survival::Sectors, random),
            DiskEvent::Create(path) => self.create(path),
            DiskEvent::MakeDir(path) => {
                self.dirs.insert(path.clone());
            }
            DiskEvent::Rename { from, to } => {
                self.change_name(NameChange::Rename { from: from.clone(), to: to.clone() })
            }
            DiskEvent::Unlink(path) => self.change_name(NameChange::Unlink(path.clone())),
            DiskEvent::Output(_) => {}
        }
    }

    /// Writes one image after a power loss into `dir`, which is empty.
    pub fn lose_power(&self, dir: &Path, random: &mut Random) -> Result<()> {
        let mut names = self.durable_names.clone();
        let survived = random.below(self.renamed.len() as u64 + 1) as usize;
        self.renamed[..survived].iter().for_each(|change| change.apply(&mut names));
        let survival = match random.below(4) {
            0 => Survival::Nothing,
            1 => Survival::Everything,
            _ => Survival::Sectors,
        };
        for below in &self.dirs {
            fs::create_dir_all(dir.join(below))?;
        }
        for (name, &file) in &names {
            let mut file = self.files[file].clone();
            file.settle(survival, random);
            fs::write(dir.join(name), &file.durable)?;
        }
        Ok(())
    }

    fn file(&mut self, path: &Path) -> &mut File {
        if !self.names.contains_key(path) {
            self.create(path);
        }
        &mut self.files[self.names[path]]
    }

    fn create(&mut self, path: &Path) {
        self.sync_names();
        self.names.insert(path.to_owned(), self.files.len());
        self.durable_names.insert(path.to_owned(), self.files.len());
        self.files.push(File::default());
    }

    fn change_name(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.renamed.push(change);
    }

    fn sync_names(&mut self) {
        for change in self.renamed.drain(..) {
            change.apply(&mut self.durable_names);
        }
    }
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<PathBuf, usize>) {
        match self {
            Self::Rename { from, to } => {
                if let Some(file) = names.remove(from) {
                    names.insert(to.clone(), file);
                }
            }
            Self::Unlink(path) => {
                names.remove(path);
            }
        }
    }
}

impl File {
    /// Makes as much of the unsynced changes durable as `survival` says and drops the rest.
    fn settle(&mut self, survival: Survival, random: &mut Random) {
        for change in std::mem::take(&mut self.unsynced) {
            match (survival, change) {
                (Survival::Nothing, _) => {}
                (Survival::Everything, Change::Write { offset, data }) => self.put(offset, &data),
                (Survival::Everything, Change::Truncate(length)) => self.durable.resize(length as usize, 0),
                (Survival::Sectors, Change::Truncate(length)) => {
                    if random.chance(500) {
                        self.durable.resize(length as usize, 0);
                    }
                }
                (Survival::Sectors, Change::Write { offset, data }) => {
                    for (at, sector) in sectors(offset, &data) {
                        if random.chance(500) {
                            self.put(at, sector);
                        }
                    }
                }
            }
        }
    }

    fn put(&mut self, offset: u64, data: &[u8]) {
        let (start, end) = (offset as usize, offset as usize + data.len());
        if self.durable.len() < end {
            self.durable.resize(end, 0);
        }
        self.durable[start..end].copy_from_slice(data);
    }
}

/// A write, split at sector boundaries.
fn sectors(offset: u64, data: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let mut at = offset;
    let mut rest = data;
    std::iter::from_fn(move || {
        let length = ((SECTOR - at % SECTOR) as usize).min(rest.len());
        let (sector, after) = rest.split_at(length);
        let start = at;
        at += length as u64;
        rest = after;
        (!sector.is_empty()).then_some((start, sector))
    })
}

#[cfg(test)]
mod tests;
