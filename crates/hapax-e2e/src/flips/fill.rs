//! [`Fill`]: the child process that fills a store, and closes it or is killed.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use futures_util::future::try_join_all;
use hapax_core::{Claim, ClaimRequest, Class, Fenced, Format, Recorded, Store};
use hapax_store_file::FileStore;
use hapax_testkit::Random;
use hapax_testkit::operations::{RETENTION, ask};

use super::image::StoreEnd;

/// Longer than a run.
const LEASE: Duration = Duration::from_secs(3_600);

/// Concurrent operations.
const CONCURRENT: u64 = 500;

/// Operations after the last commit: they are only in the journal when the process is then killed.
const LAST: u64 = 40;

/// The arguments of a child process.
#[derive(clap::Args, Clone, Debug)]
pub struct Fill {
    /// The directory of the store.
    #[arg(long)]
    pub dir: PathBuf,
    /// Operations to complete.
    #[arg(long)]
    pub operations: u64,
    /// How the process ends.
    #[arg(long, value_enum)]
    pub end: StoreEnd,
}

impl Fill {
    /// Fills the store, prints `filled`, and ends or waits to be killed.
    pub fn run(&self) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        // So that a small store writes its index and restarts its journal as often as a large one.
        let options = FileStore::options();
        let options =
            if self.operations < 20_000 { options.index_after(500).commit_after(100_000) } else { options };
        let store = options.open(&self.dir)?;
        runtime.block_on(async {
            let before = self.operations.saturating_sub(LAST);
            let mut first = 0;
            while first < before {
                let end = before.min(first + CONCURRENT);
                try_join_all((first..end).map(|number| finish(&store, number))).await?;
                first = end;
            }
            // Commits what is in the journal.
            store.stats().await?;
            for number in before..self.operations {
                finish(&store, number).await?;
            }
            anyhow::Ok(())
        })?;
        if self.end == StoreEnd::Closed {
            drop(store);
        }
        std::io::stdout().write_all(b"filled\n")?;
        if self.end == StoreEnd::Killed {
            std::thread::park();
            bail!("the child was not killed");
        }
        Ok(())
    }
}

async fn finish(store: &FileStore, number: u64) -> Result<()> {
    let Claim::Acquired(lease) = store.claim(&claim_request(number)).await? else {
        bail!("operation {number} is not free");
    };
    let recorded = Recorded::new(Class::Success, Format::FUNCTION, payload(number));
    let Fenced::Applied = store.complete(&lease, &recorded, RETENTION).await? else {
        bail!("operation {number} was lost");
    };
    Ok(())
}

pub(super) fn claim_request(number: u64) -> ClaimRequest {
    ClaimRequest { lease: LEASE, ..ask(&format!("order-{number}")) }
}

/// About 700 bytes, now and then more than fits on a page.
pub(super) fn payload(number: u64) -> Vec<u8> {
    let mut random = Random::seeded(number).fork(11);
    let length = if random.chance(20) { 6_000 } else { 300 + random.below(800) };
    let mut bytes = vec![0; length as usize];
    random.fill(&mut bytes);
    bytes
}
