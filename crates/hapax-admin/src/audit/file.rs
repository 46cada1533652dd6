//! The file of the audit log: each line is synced before it is acknowledged.
//!
//! A full file is rotated: it is renamed to the next number, `audit.1.jsonl` before `audit.2.jsonl`. Rotated files are
//! never removed. Processes that share a directory have separate files: the second one writes `audit-2.jsonl`.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::Line;

/// The most processes that can share a directory.
const WRITERS_MAX: usize = 64;

/// The longest line that is read. Longer lines were not written here, and are skipped without being buffered.
const LINE_BYTES_MAX: u64 = 64 * 1024;

/// The file, held open.
#[derive(Clone, Debug)]
pub(super) struct LogFile(Arc<Mutex<Open>>);

#[derive(Debug)]
struct Open {
    file: File,
    bytes: u64,
    bytes_max: u64,
    names: Names,
    /// The number of the last rotated file; 0 for none.
    rotated: u64,
    /// Whether the last line may be incomplete. The next one then begins with a line break.
    is_torn: bool,
    /// Held while this process owns the files.
    _lock: File,
}

/// The directory and the name prefix of the files of one process.
#[derive(Clone, Debug)]
struct Names {
    directory: PathBuf,
    stem: String,
}

impl LogFile {
    /// Opens the file in `directory` and passes its lines to `take`, after those of the last rotated file.
    pub(super) fn open(directory: &Path, bytes_max: u64, mut take: impl FnMut(Line)) -> io::Result<Self> {
        create_directory(directory)?;
        let (names, lock) = Names::own(directory)?;
        let rotated = names.last_rotated()?;
        if rotated > 0 {
            let before = File::open(names.rotated(rotated))?;
            if before.metadata()?.is_file() {
                read_lines(&before, &mut take)?;
            }
        }
        let is_new = !names.current().exists();
        let mut file = opened(&names.current(), OpenOptions::new().create(true))?;
        if !file.metadata()?.is_file() {
            // Reading a device or a pipe might never end.
            let why = format!("{} is not a file", names.current().display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        read_lines(&file, &mut take)?;
        if !ends_with_line(&mut file)? {
            // A crash left an incomplete line, which stays in the file.
            file.write_all(b"\n")?;
        }
        file.sync_all()?;
        if is_new {
            File::open(directory)?.sync_all()?;
        }
        let bytes = file.metadata()?.len();
        let open = Open { file, bytes, bytes_max, names, rotated, is_torn: false, _lock: lock };
        Ok(Self(Arc::new(Mutex::new(open))))
    }

    /// The path of the file.
    pub(super) fn path(&self) -> PathBuf {
        self.0.lock().names.current()
    }

    /// Replaces the file.
    #[cfg(test)]
    pub(super) fn write_to(&self, file: File) {
        self.0.lock().file = file;
    }

    /// Appends a line and syncs it. Each line is one write, so a crash leaves a complete line or the start of one.
    pub(super) async fn append(&self, line: Vec<u8>) -> io::Result<()> {
        let open = self.0.clone();
        let written = tokio::task::spawn_blocking(move || open.lock().append(&line));
        written.await.map_err(io::Error::other)?
    }
}

impl Open {
    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        let length = line.len() as u64;
        if self.bytes > 0 && self.bytes.saturating_add(length) > self.bytes_max {
            // A failed rotation must not prevent the action or its entry.
            if let Err(error) = self.rotate() {
                tracing::warn!(%error, "the audit log is full and cannot be rotated; it keeps growing");
            }
        }
        // A retry after a failed write must not be appended to an incomplete line.
        let line = if self.is_torn { &[b"\n", line].concat()[..] } else { line };
        self.bytes += length;
        self.is_torn = true;
        self.file.write_all(line)?;
        self.file.sync_data()?;
        self.is_torn = false;
        Ok(())
    }

    /// Rotates the file. Every intermediate state on the disk is read correctly at the next start.
    fn rotate(&mut self) -> io::Result<()> {
        let rotated = self.rotated + 1;
        fs::rename(self.names.current(), self.names.rotated(rotated))?;
        self.rotated = rotated;
        self.file = opened(&self.names.current(), OpenOptions::new().create_new(true))?;
        (self.bytes, self.is_torn) = (0, false);
        File::open(&self.names.directory)?.sync_all()
    }
}

impl Names {
    /// The first unused names in `directory`, and the lock on them.
    fn own(directory: &Path) -> io::Result<(Self, File)> {
        for number in 1..=WRITERS_MAX {
            let stem = if number == 1 { "audit".to_owned() } else { format!("audit-{number}") };
            let lock = opened(&directory.join(format!("{stem}.lock")), OpenOptions::new().create(true))?;
            match lock.try_lock() {
                Ok(()) => return Ok((Self { directory: directory.to_owned(), stem }, lock)),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Err(io::Error::other(format!("{WRITERS_MAX} processes already have an audit log there")))
    }

    fn current(&self) -> PathBuf {
        self.directory.join(format!("{}.jsonl", self.stem))
    }

    fn rotated(&self, number: u64) -> PathBuf {
        self.directory.join(format!("{}.{number}.jsonl", self.stem))
    }

    /// The number of the last rotated file.
    fn last_rotated(&self) -> io::Result<u64> {
        let mut last = 0;
        for entry in fs::read_dir(&self.directory)? {
            let name = entry?.file_name();
            let rest = name.to_str().and_then(|name| name.strip_prefix(self.stem.as_str()));
            let number = rest.and_then(|rest| rest.strip_prefix('.')?.strip_suffix(".jsonl"));
            last = last.max(number.and_then(|number| number.parse().ok()).unwrap_or(0));
        }
        Ok(last)
    }
}

/// Creates the directory durably, readable by this user only.
fn create_directory(directory: &Path) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    let parent = directory.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    create_directory(parent)?;
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(directory) {
        // Another process has created it.
        Err(_) if directory.is_dir() => {}
        created => created?,
    }
    File::open(parent)?.sync_all()
}

fn opened(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    options.read(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options.open(path)
}

fn read_lines(file: &File, take: &mut impl FnMut(Line)) -> io::Result<()> {
    let mut reader = BufReader::new(file);
    let (mut line, mut skipped, mut is_inside) = (Vec::new(), 0_u64, false);
    loop {
        line.clear();
        if reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let is_whole = line.ends_with(b"\n");
        match serde_json::from_slice(&line) {
            Ok(read) if !is_inside => take(read),
            _ if line.trim_ascii().is_empty() => {}
            _ => skipped += 1,
        }
        is_inside = !is_whole;
    }
    if skipped > 0 {
        tracing::warn!(skipped, "skipped invalid lines of the audit log; they stay in the file");
    }
    Ok(())
}

fn ends_with_line(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(true);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}
