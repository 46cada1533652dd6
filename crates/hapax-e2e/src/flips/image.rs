//! The files that a process left behind, and bits of them.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use super::CHILD_ARGUMENT;
use crate::crash::Seed;

/// The page size of the database.
const PAGE: u64 = 4_096;

/// First bytes of pages that lead to others, and of those of indexes.
const WAYS: [u8; 3] = [0x05, 0x02, 0x0A];

/// Pages at the beginning of the database that hold what describes it, and the roots of its tables.
const FIRST_PAGES: u64 = 8;

/// How a process left its store.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum End {
    /// It ended as it should.
    Orderly,
    /// By kill -9, right after the last operation was acknowledged.
    Killed,
}

/// Which bits are flipped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Aim {
    /// Any bit of all files together.
    Anywhere,
    /// Any bit of any file, a small file as often as a large one.
    AnyFile,
    /// What leads to records: the database's description, its inner pages and its indexes.
    Ways,
    /// The pages of the index that say which keys there are.
    Index,
}

/// The files of a store that no process uses.
#[derive(Debug)]
pub struct Image {
    dir: TempDir,
    files: Vec<PathBuf>,
    operations: u64,
    end: End,
    /// Where in the database the pages lie that lead to records, and those of the index.
    ways: Vec<u64>,
    index: Vec<u64>,
}

impl fmt::Display for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = match self.end {
            End::Orderly => "an orderly end",
            End::Killed => "kill -9",
        };
        write!(f, "{} operations, {} MiB, {end}", self.operations, self.bytes() >> 20)
    }
}

impl Image {
    pub(super) fn make(program: &Path, root: &Path, operations: u64, end: End) -> Result<Self> {
        let dir = TempDir::new_in(root)?;
        let end_argument = match end {
            End::Orderly => "orderly",
            End::Killed => "killed",
        };
        let mut child = Command::new(program)
            .args([CHILD_ARGUMENT, "--operations", &operations.to_string(), "--end", end_argument, "--dir"])
            .arg(dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let mut said = String::new();
        let output = child.stdout.take().context("the child's output is a pipe")?;
        BufReader::new(output).read_line(&mut said)?;
        if end == End::Killed {
            child.kill()?;
        }
        child.wait()?;
        ensure!(said == "filled\n", "the child did not fill its store");
        let mut files =
            fs::read_dir(dir.path())?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<PathBuf>>>()?;
        files.retain(|file| fs::metadata(file).is_ok_and(|found| found.len() > 0));
        files.sort();
        let mut image = Self { dir, files, operations, end, ways: Vec::new(), index: Vec::new() };
        image.find_pages()?;
        Ok(image)
    }

    fn find_pages(&mut self) -> Result<()> {
        let bytes = fs::read(self.database())?;
        let pages = (0..).zip(bytes.chunks(PAGE as usize));
        for (number, page) in pages {
            if number < FIRST_PAGES || WAYS.contains(&page[0]) {
                self.ways.push(number * PAGE);
            }
            // One long cell, of one leaf of the index.
            if page[0] == 0x0D && page[3..5] == [0, 1] && page.len() > 4_000 {
                self.index.push(number * PAGE);
            }
        }
        Ok(())
    }

    fn database(&self) -> PathBuf {
        self.dir.path().join("hapax.db")
    }

    /// How many operations were acknowledged.
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

    /// Flips a bit of the copy in `dir`; which one.
    pub(super) fn flip(&self, dir: &Path, aim: Aim, seed: &mut Seed) -> Result<String> {
        let (file, at) = match aim {
            Aim::Anywhere => self.anywhere(seed.below(self.bytes()))?,
            Aim::AnyFile => {
                let file = &self.files[seed.below(self.files.len() as u64) as usize];
                (file.clone(), seed.below(length(file)))
            }
            Aim::Ways => (self.database(), in_pages(&self.ways, seed)),
            Aim::Index => (self.database(), in_pages(&self.index, seed)),
        };
        let name = file.file_name().context("a file has a name")?;
        let bit = seed.below(8);
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

fn in_pages(pages: &[u64], seed: &mut Seed) -> u64 {
    pages[seed.below(pages.len() as u64) as usize] + seed.below(PAGE)
}

fn length(file: &Path) -> u64 {
    fs::metadata(file).map_or(0, |found| found.len())
}
