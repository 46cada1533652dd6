//! No single flipped bit, in any file of a file store, makes a finished operation run again.
//!
//! A child process fills a store, and closes it or is killed with operations that are only in the journal. Each *image* is
//! copied, one bit of one of its files is flipped while it is closed, and the store is opened again. Every acknowledged
//! operation is then claimed once more. The claim may be a replay or be refused as unreadable or uncertain, or the store
//! may refuse to open. The key must not be acquired.
//!
//! # Limits
//!
//! - A bit flips while the store is closed. Flips in memory are not modelled.
//! - Outcomes are compared with what was recorded; a wrong one counts as a fault too.

mod fill;
mod image;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use futures_util::future::join_all;
use hapax_core::{Claim, Store, StoreErrorKind};
use hapax_store_file::FileStore;
use hapax_testkit::Random;
use tempfile::TempDir;
use tokio::runtime::Runtime;

pub use self::fill::Fill;
use self::fill::{claim_request, payload};
pub use self::image::{Aim, Image, StoreEnd};

/// Operations of a small store.
pub const SMALL: u64 = 3_000;
/// Operations of a store of more than 64 MiB.
pub const LARGE: u64 = 75_000;

/// Concurrent claims.
const CONCURRENT: usize = 1_024;

/// What flipped bits led to.
#[derive(Clone, Debug, Default)]
pub struct FlipReport {
    /// Bits flipped, each in its own copy.
    pub flips: u64,
    /// Stores that refused to open.
    pub refused: u64,
    /// Stores that were opened and refused operations.
    pub unreadable: u64,
    /// Operations that were replayed as recorded, in all stores.
    pub replayed: u64,
    /// Operations that were acquired again, and the flipped bit.
    pub executed_again: Vec<String>,
    /// Operations with another claim than that, and the flipped bit.
    pub wrong: Vec<String>,
}

impl FlipReport {
    /// Adds what another run found.
    pub fn add(&mut self, other: Self) {
        self.flips += other.flips;
        self.refused += other.refused;
        self.unreadable += other.unreadable;
        self.replayed += other.replayed;
        self.executed_again.extend(other.executed_again);
        self.wrong.extend(other.wrong);
    }
}

/// Makes stores and damages copies of them.
#[derive(Debug)]
pub struct FlipRig {
    program: PathBuf,
    root: TempDir,
    runtime: Runtime,
}

impl FlipRig {
    /// A rig whose children are `program child …`. It uses a file system in memory where there is one: every flip needs a
    /// copy of a store.
    pub fn new(program: impl Into<PathBuf>) -> Result<Self> {
        let in_memory = Path::new("/dev/shm");
        let root = if in_memory.is_dir() { TempDir::new_in(in_memory)? } else { TempDir::new()? };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build()?;
        Ok(Self { program: program.into(), root, runtime })
    }

    /// A store with so many operations, whose process ended in this way.
    pub fn image(&self, operations: u64, end: StoreEnd) -> Result<Image> {
        let image = Image::make(&self.program, self.root.path(), operations, end)?;
        let intact = self.open_and_claim(&image, &self.copy(&image)?)?;
        ensure!(
            intact.replayed == image.operations(),
            "{image} is damaged before any bit is flipped: {intact:?}"
        );
        Ok(image)
    }

    /// Flips one bit in each of `flips` copies of `image`.
    pub fn flip(&self, image: &Image, aim: Aim, flips: u64, random: &mut Random) -> Result<FlipReport> {
        let mut report = FlipReport::default();
        for _ in 0..flips {
            let copy = self.copy(image)?;
            let bit = image.flip(copy.path(), aim, random)?;
            let mut found = self.open_and_claim(image, &copy).with_context(|| format!("{image}, {bit}"))?;
            found.flips = 1;
            for fault in found.executed_again.iter_mut().chain(&mut found.wrong) {
                *fault = format!("{image}, {bit}: {fault}");
            }
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

    /// Opens a store and claims every acknowledged operation.
    fn open_and_claim(&self, image: &Image, dir: &TempDir) -> Result<FlipReport> {
        let mut report = FlipReport::default();
        let store = match FileStore::open(dir.path()) {
            Ok(store) => store,
            Err(error) => {
                let is_refusal =
                    matches!(error.kind(), StoreErrorKind::Incompatible | StoreErrorKind::Unavailable);
                ensure!(is_refusal, "it refused to open as {:?}: {error}", error.kind());
                report.refused = 1;
                return Ok(report);
            }
        };
        self.runtime.block_on(async {
            let numbers = Vec::from_iter(0..image.operations());
            for numbers in numbers.chunks(CONCURRENT) {
                let asks = Vec::from_iter(numbers.iter().map(|number| claim_request(*number)));
                let claims = join_all(asks.iter().map(|ask| store.claim(ask))).await;
                for (number, claim) in numbers.iter().zip(claims) {
                    match claim {
                        Ok(Claim::Replay { recorded, .. })
                            if recorded.payload[..] == payload(*number)[..] =>
                        {
                            report.replayed += 1;
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
