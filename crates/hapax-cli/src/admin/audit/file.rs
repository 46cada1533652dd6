//! Lines at the end of a file, each on the disk before it counts.
//!
//! A file that is full is put aside under the next number, `audit.1.jsonl` before `audit.2.jsonl`, and another begun. None
//! is ever removed here.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::Line;

const NAME: &str = "audit.jsonl";

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
    directory: PathBuf,
    /// The number of the file that was put aside last; 0 for none.
    aside: u64,
}

impl LogFile {
    /// Opens the file in `directory`, and hands each of its lines to `take`, after those of the file before it.
    pub(super) fn open(directory: &Path, bytes_max: u64, mut take: impl FnMut(Line)) -> io::Result<Self> {
        let aside = last_aside(directory)?;
        if aside > 0 {
            let before = File::open(directory.join(aside_name(aside)))?;
            if before.metadata()?.is_file() {
                read_lines(&before, &mut take)?;
            }
        }
        let is_new = !directory.join(NAME).exists();
        let mut file = opened(directory, OpenOptions::new().create(true))?;
        if !file.metadata()?.is_file() {
            // A device or a pipe could be read for ever.
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{NAME} is not a file")));
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
        let open = Open { file, bytes, bytes_max, directory: directory.to_owned(), aside };
        Ok(Self(Arc::new(Mutex::new(open))))
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
        self.file.write_all(line)?;
        self.bytes += length;
        self.file.sync_data()
    }

    /// Whatever is on the disk when this breaks off is read at the next start: what was put aside last comes first.
    fn begin_another(&mut self) -> io::Result<()> {
        let aside = self.aside + 1;
        fs::rename(self.directory.join(NAME), self.directory.join(aside_name(aside)))?;
        self.aside = aside;
        self.file = opened(&self.directory, OpenOptions::new().create_new(true))?;
        self.bytes = 0;
        File::open(&self.directory)?.sync_all()
    }
}

fn opened(directory: &Path, options: &mut OpenOptions) -> io::Result<File> {
    options.read(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options.open(directory.join(NAME))
}

fn aside_name(number: u64) -> String {
    format!("audit.{number}.jsonl")
}

/// The number of the file that was put aside last.
fn last_aside(directory: &Path) -> io::Result<u64> {
    let mut last = 0;
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("audit.")?.strip_suffix(".jsonl"));
        last = last.max(number.and_then(|number| number.parse().ok()).unwrap_or(0));
    }
    Ok(last)
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
