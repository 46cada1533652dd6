//! [`Image`]: the files of a closed store, and the bits that are flipped in them.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use hapax_testkit::Random;
use tempfile::TempDir;

use crate::rig::child::{CHILD_ARGUMENT, ChildProcess};

/// The page size of the database.
const PAGE: u64 = 4_096;

/// First bytes of inner pages of tables, and of pages of indexes.
const INNER: [u8; 3] = [0x05, 0x02, 0x0A];

/// Pages at the start of the database with its schema and the roots of its tables.
const FIRST_PAGES: u64 = 8;

/// How the process of a store ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum StoreEnd {
    /// It closed the store.
    Closed,
    /// It was killed with SIGKILL right after the last acknowledgement.
    Killed,
}

/// Which bits are flipped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Aim {
    /// Any bit of all files together.
    Anywhere,
    /// Any bit of any file, a small file as often as a large one.
    AnyFile,
    /// The pages that lead to records: the schema, inner pages and indexes.
    InnerPages,
    /// The pages of the key index.
    Index,
}

/// The files of a closed store.
#[derive(Debug)]
pub struct Image {
    dir: TempDir,
    files: Vec<PathBuf>,
    operations: u64,
    end: StoreEnd,
    /// The offsets of the pages that lead to records, and those of the index.
    inner: Vec<u64>,
    index: Vec<u64>,
}

impl fmt::Display for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = match self.end {
            StoreEnd::Closed => "closed",
            StoreEnd::Killed => "kill -9",
        };
        write!(f, "{} operations, {} MiB, {end}", self.operations, self.bytes() >> 20)
    }
}

impl Image {
    pub(super) fn make(program: &Path, root: &Path, operations: u64, end: StoreEnd) -> Result<Self> {
        let dir = TempDir::new_in(root)?;
        let end_argument = match end {
            StoreEnd::Closed => "closed",
            StoreEnd::Killed => "killed",
        };
        let mut command = Command::new(program);
        command
            .args([CHILD_ARGUMENT, "--operations", &operations.to_string(), "--end", end_argument, "--dir"])
            .arg(dir.path());
        let mut child = ChildProcess::spawn(&mut command)?;
        let mut line = String::new();
        BufReader::new(child.stdout()?).read_line(&mut line)?;
        match end {
            StoreEnd::Closed => child.wait()?,
            StoreEnd::Killed => child.kill()?,
        };
        ensure!(line == "filled\n", "the child did not fill its store");
        let mut files =
            fs::read_dir(dir.path())?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<PathBuf>>>()?;
        files.retain(|file| fs::metadata(file).is_ok_and(|found| found.len() > 0));
        files.sort();
        let mut image = Self { dir, files, operations, end, inner: Vec::new(), index: Vec::new() };
        image.find_pages()?;
        Ok(image)
    }

    fn find_pages(&mut self) -> Result<()> {
        let bytes = fs::read(self.database())?;
        let pages = (0..).zip(bytes.chunks(PAGE as usize));
        for (number, page) in pages {
            if number < FIRST_PAGES || INNER.contains(&page[0]) {
                self.inner.push(number * PAGE);
            }
            // A table leaf with one long cell is a leaf of the key index.
            if page[0] == 0x0D && page[3..5] == [0, 1] && page.len() > 4_000 {
                self.index.push(number * PAGE);
            }
        }
        Ok(())
    }

    fn database(&self) -> PathBuf {
        self.dir.path().join("hapax.db")
    }

    /// Operations that were acknowledged.
    pub fn operations(&self) -> u64 {
        self.operations
    }

    /// All files that have any bytes.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Bytes of all files together.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| length(file)).sum()
    }

    /// Flips a bit of the copy in `dir`. Returns which one.
    pub(super) fn flip(&self, dir: &Path, aim: Aim, random: &mut Random) -> Result<String> {
        let (file, at) = match aim {
            Aim::Anywhere => self.anywhere(random.below(self.bytes()))?,
            Aim::AnyFile => {
                let file = &self.files[random.below(self.files.len() as u64) as usize];
                (file.clone(), random.below(length(file)))
            }
            Aim::InnerPages => (self.database(), in_pages(&self.inner, random)),
            Aim::Index => (self.database(), in_pages(&self.index, random)),
        };
        let name = file.file_name().context("a file has a name")?;
        let bit = random.below(8);
        let mut copy = OpenOptions::new().read(true).write(true).open(dir.join(name))?;
        let mut byte = [0];
        copy.seek(SeekFrom::Start(at))?;
        copy.read_exact(&mut byte)?;
        byte[0] ^= 1 << bit;
        copy.seek(SeekFrom::Start(at))?;
        copy.write_all(&byte)?;
        Ok(format!("bit {bit} of byte {at} of {}", name.to_string_lossy()))
    }

    fn anywhere(&self, mut at: u64) -> Result<(PathBuf, u64)> {
        for file in &self.files {
            let length = length(file);
            if at < length {
                return Ok((file.clone(), at));
            }
            at -= length;
        }
        anyhow::bail!("the byte is in no file")
    }
}

fn in_pages(pages: &[u64], random: &mut Random) -> u64 {
    pages[random.below(pages.len() as u64) as usize] + random.below(PAGE)
}

fn length(file: &Path) -> u64 {
    fs::metadata(file).map_or(0, |found| found.len())
}
