//! Lines at the end of a file, each on the disk before it counts.
//!
//! A file that is full is put aside under the next number, `audit.1.jsonl` before `audit.2.jsonl`, and another begun. None
//! is ever removed here. Of several processes with one directory each has files of its own: the second one writes
//! `audit-2.jsonl`.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::Line;

/// How many processes may have their logs in one directory. More are a mistake that goes on.
const WRITERS_MAX: usize = 64;

/// No line that was written here is longer; what is longer is skipped, not held.
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
    /// The number of the file that was put aside last; 0 for none.
    aside: u64,
    /// Whether the last line may have been written in part. The next one then begins on a line of its own.
    is_torn: bool,
    /// Held as long as these files are ours.
    _lock: File,
}

/// Where one process's files are, and what their names begin with.
#[derive(Clone, Debug)]
struct Names {
    directory: PathBuf,
    stem: String,
}

impl LogFile {
    /// Opens the file in `directory`, and hands each of its lines to `take`, after those of the file before it.
    pub(super) fn open(directory: &Path, bytes_max: u64, mut take: impl FnMut(Line)) -> io::Result<Self> {
        made(directory)?;
        let (names, lock) = Names::own(directory)?;
        let aside = names.last_aside()?;
        if aside > 0 {
            let before = File::open(names.aside(aside))?;
            if before.metadata()?.is_file() {
                read_lines(&before, &mut take)?;
            }
        }
        let is_new = !names.current().exists();
        let mut file = opened(&names.current(), OpenOptions::new().create(true))?;
        if !file.metadata()?.is_file() {
            // A device or a pipe could be read for ever.
            let why = format!("{} is not a file", names.current().display());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        read_lines(&file, &mut take)?;
        if !ends_with_line(&mut file)? {
            // A power failure cut the last line off. It stays as it is; the next one begins on its own.
            file.write_all(b"\n")?;
        }
        file.sync_all()?;
        if is_new {
            File::open(directory)?.sync_all()?;
        }
        let bytes = file.metadata()?.len();
        let open = Open { file, bytes, bytes_max, names, aside, is_torn: false, _lock: lock };
        Ok(Self(Arc::new(Mutex::new(open))))
    }

    /// The file that lines are written to.
    pub(super) fn path(&self) -> PathBuf {
        self.0.lock().names.current()
    }

    /// Writes to this file from now on.
    #[cfg(test)]
    pub(super) fn write_to(&self, file: File) {
        self.0.lock().file = file;
    }

    /// Appends a line and syncs it. One write per line: a crash leaves a whole line or the start of one.
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
            // A log that is too long is better than an action that nobody can take, or that is not in it.
            if let Err(error) = self.begin_another() {
                tracing::warn!(%error, "the audit log is full and cannot be put aside; it grows on");
            }
        }
        // Whoever is told that it failed may try again, and that line must not be lost with the start of this one.
        let line = if self.is_torn { &[b"\n", line].concat()[..] } else { line };
        self.bytes += length;
        self.is_torn = true;
        self.file.write_all(line)?;
        self.file.sync_data()?;
        self.is_torn = false;
        Ok(())
    }

    /// Whatever is on the disk when this breaks off is read at the next start: what was put aside last comes first.
    fn begin_another(&mut self) -> io::Result<()> {
        let aside = self.aside + 1;
        fs::rename(self.names.current(), self.names.aside(aside))?;
        self.aside = aside;
        self.file = opened(&self.names.current(), OpenOptions::new().create_new(true))?;
        (self.bytes, self.is_torn) = (0, false);
        File::open(&self.names.directory)?.sync_all()
    }
}

impl Names {
    /// The first names in `directory` that no other process has, and what keeps them so.
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
        Err(io::Error::other(format!("{WRITERS_MAX} processes have their audit logs there already")))
    }

    fn current(&self) -> PathBuf {
        self.directory.join(format!("{}.jsonl", self.stem))
    }

    fn aside(&self, number: u64) -> PathBuf {
        self.directory.join(format!("{}.{number}.jsonl", self.stem))
    }

    /// The number of the file that was put aside last.
    fn last_aside(&self) -> io::Result<u64> {
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

/// Makes the directory where there is none, durably. What is in it is nobody else's business.
fn made(directory: &Path) -> io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    let parent = directory.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    made(parent)?;
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(directory) {
        // Another process was quicker.
        Err(_) if directory.is_dir() => {}
        made => made?,
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
        tracing::warn!(skipped, "lines of the audit log cannot be read; they stay in the file");
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
