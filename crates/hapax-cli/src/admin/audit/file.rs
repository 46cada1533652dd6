//! Lines at the end of a file, each on the disk before it counts.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use super::Line;

const NAME: &str = "audit.jsonl";

/// No line that was written here is longer; what is longer is skipped, not held.
const LINE_BYTES_MAX: u64 = 64 * 1024;

/// The file, held open.
#[derive(Clone, Debug)]
pub(super) struct LogFile(Arc<Mutex<File>>);

impl LogFile {
    /// Opens the file in `directory` and hands each of its lines to `take`.
    pub(super) fn open(directory: &Path, take: impl FnMut(Line)) -> io::Result<Self> {
        let path = directory.join(NAME);
        let is_new = !path.exists();
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&path)?;
        if !file.metadata()?.is_file() {
            // A device or a pipe could be read for ever.
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{NAME} is not a file")));
        }
        read_lines(&file, take)?;
        if !ends_with_line(&mut file)? {
            // A power failure cut the last line off. It stays as it is; the next one begins on its own.
            file.write_all(b"\n")?;
        }
        file.sync_all()?;
        if is_new {
            File::open(directory)?.sync_all()?;
        }
        Ok(Self(Arc::new(Mutex::new(file))))
    }

    /// Makes every write fail from now on.
    #[cfg(test)]
    pub(super) fn fail(&self, directory: &Path) {
        *self.0.lock() = File::open(directory.join(NAME)).expect("the file is there");
    }

    /// Appends a line and syncs it. One write per line: a crash leaves a whole line or the start of one.
    pub(super) async fn append(&self, line: Vec<u8>) -> io::Result<()> {
        let file = self.0.clone();
        let written = tokio::task::spawn_blocking(move || {
            let mut file = file.lock();
            file.write_all(&line)?;
            file.sync_data()
        });
        written.await.map_err(io::Error::other)?
    }
}

fn read_lines(file: &File, mut take: impl FnMut(Line)) -> io::Result<()> {
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
