//! Whether a single flipped bit, in any file of a file store, makes a finished operation run again.
//!
//! Stores are filled by a child process and left in both ways that a process can leave them: in an orderly way, and by
//! kill -9 with operations that are in the journal only. Each *image* is copied, one bit of one of its files is flipped
//! while no process uses it, and the store is opened as its next owner would. Every operation that was acknowledged is
//! then asked for once more. It may be answered, refused as unreadable or uncertain, or the store may not open at all.
//! It must not be free.
//!
//! # Limits
//!
//! - A bit flips while the store is closed. One that flips in memory is not modelled.
//! - Outcomes are compared with what was recorded; a wrong one counts as a fault too.

mod fill;
mod image;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use futures_util::future::join_all;
use hapax_core::{Claim, Store, StoreErrorKind};
use hapax_store_file::FileStore;
use tempfile::TempDir;
use tokio::runtime::Runtime;

pub use self::fill::Fill;
use self::fill::{ask, payload};
pub use self::image::{Aim, End, Image};
use crate::crash::Seed;

/// The argument that makes the program the child that fills a store.
pub const CHILD_ARGUMENT: &str = "child";

/// Operations of a small store, and of one of more than 64 MiB.
pub const SMALL: u64 = 3_000;
/// The operations of a store of more than 64 MiB.
pub const LARGE: u64 = 75_000;

/// Claims that are asked for together.
const TOGETHER: usize = 1_024;

/// What a flipped bit did.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Bits flipped, each in a copy of its own.
    pub flips: u64,
    /// Stores that were not opened.
    pub refused: u64,
    /// Stores that were opened and have operations that are neither run nor answered.
    pub unreadable: u64,
    /// Operations that were answered as recorded, in all stores.
    pub answered: u64,
    /// Operations that ran again, or were answered otherwise than recorded: where the bit was.
    pub executed_again: Vec<String>,
    /// Operations that were answered otherwise than recorded.
    pub wrong: Vec<String>,
}

impl Report {
    /// Adds what another run found.
    pub fn add(&mut self, other: Self) {
        self.flips += other.flips;
        self.refused += other.refused;
        self.unreadable += other.unreadable;
        self.answered += other.answered;
        self.executed_again.extend(other.executed_again);
        self.wrong.extend(other.wrong);
    }
}

/// Where stores are made and damaged.
#[derive(Debug)]
pub struct Rig {
    program: PathBuf,
    root: TempDir,
    runtime: Runtime,
}

impl Rig {
    /// A rig whose children are `program child …`. It works in memory where that is possible: every flip needs a copy of
    /// a store, and nothing of it has to survive.
    pub fn new(program: impl Into<PathBuf>) -> Result<Self> {
        let in_memory = Path::new("/dev/shm");
        let root = if in_memory.is_dir() { TempDir::new_in(in_memory)? } else { TempDir::new()? };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build()?;
        Ok(Self { program: program.into(), root, runtime })
    }

    /// A store with so many operations, left in this way.
    pub fn image(&self, operations: u64, end: End) -> Result<Image> {
        let image = Image::make(&self.program, self.root.path(), operations, end)?;
        let untouched = self.open_and_ask(&image, &self.copy(&image)?)?;
        ensure!(
            untouched.answered == image.operations(),
            "{image} is not whole before any bit is flipped: {untouched:?}"
        );
        Ok(image)
    }

    /// Flips one bit in each of `flips` copies of `image`.
    pub fn flip(&self, image: &Image, aim: Aim, flips: u64, seed: &mut Seed) -> Result<Report> {
        let mut report = Report::default();
        for _ in 0..flips {
            let copy = self.copy(image)?;
            let place = image.flip(copy.path(), aim, seed)?;
            let mut found = self.open_and_ask(image, &copy).with_context(|| format!("{image}, {place}"))?;
            found.flips = 1;
            found.executed_again.iter_mut().for_each(|what| *what = format!("{image}, {place}: {what}"));
            found.wrong.iter_mut().for_each(|what| *what = format!("{image}, {place}: {what}"));
            report.add(found);
        }
        Ok(report)
    }

    fn copy(&self, image: &Image) -> Result<TempDir> {
        let copy = TempDir::new_in(self.root.path())?;
        for file in image.files() {
            let name = file.file_name().context("a file has a name")?;
            fs::copy(file, copy.path().join(name))?;
        }
        Ok(copy)
    }

    /// Opens a store and asks for every operation that was acknowledged.
    fn open_and_ask(&self, image: &Image, dir: &TempDir) -> Result<Report> {
        let mut report = Report::default();
        let store = match FileStore::open(dir.path()) {
            Ok(store) => store,
            Err(error) => {
                let is_refusal =
                    matches!(error.kind(), StoreErrorKind::Incompatible | StoreErrorKind::Unavailable);
                ensure!(is_refusal, "it is refused as {:?}: {error}", error.kind());
                report.refused = 1;
                return Ok(report);
            }
        };
        self.runtime.block_on(async {
            let numbers = Vec::from_iter(0..image.operations());
            for numbers in numbers.chunks(TOGETHER) {
                let asks = Vec::from_iter(numbers.iter().map(|number| ask(*number)));
                let claims = join_all(asks.iter().map(|ask| store.claim(ask))).await;
                for (number, claim) in numbers.iter().zip(claims) {
                    match claim {
                        Ok(Claim::Replay { recorded, .. })
                            if recorded.payload[..] == payload(*number)[..] =>
                        {
                            report.answered += 1;
                        }
                        Ok(Claim::Acquired(_)) => report.executed_again.push(format!("operation {number}")),
                        Ok(Claim::Unreadable) | Err(_) => report.unreadable = 1,
                        Ok(other) => report.wrong.push(format!("operation {number}: {other:?}")),
                    }
                }
            }
        });
        Ok(report)
    }
}
