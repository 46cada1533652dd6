//! The child's part: fill a store, and leave it.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use futures_util::future::try_join_all;
use hapax_core::{
    Claim, ClaimRequest, Class, Fenced, Fingerprint, Format, Key, Nonce, OnLapse, Recorded, Scope, ScopedKey,
    Store,
};
use hapax_store_file::FileStore;

use super::image::End;
use crate::crash::Seed;

const LEASE: Duration = Duration::from_secs(3_600);
const RETENTION: Duration = Duration::from_secs(24 * 3_600);

/// Operations that are asked for together.
const TOGETHER: u64 = 500;

/// Operations at the end that nothing comes after: they are in the journal only when the process is killed at once.
const LAST: u64 = 40;

/// What a child is told to do.
#[derive(Clone, Debug)]
pub struct Fill {
    /// Where the store is.
    pub dir: PathBuf,
    /// How many operations to finish.
    pub operations: u64,
    /// How to leave the store.
    pub end: End,
}

impl Fill {
    /// Fills the store, says so, and ends or waits to be killed.
    pub fn run(&self) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        // So that a small store has rounds of its index and many generations of its journal, as a large one has.
        let options = FileStore::options();
        let options =
            if self.operations < 20_000 { options.index_after(500).commit_after(100_000) } else { options };
        let store = options.open(&self.dir)?;
        runtime.block_on(async {
            let before = self.operations.saturating_sub(LAST);
            let mut first = 0;
            while first < before {
                let end = before.min(first + TOGETHER);
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
        if self.end == End::Orderly {
            drop(store);
        }
        std::io::stdout().write_all(b"filled\n")?;
        if self.end == End::Killed {
            std::thread::park();
            bail!("a child that is to be killed ended by itself");
        }
        Ok(())
    }
}

async fn finish(store: &FileStore, number: u64) -> Result<()> {
    let Claim::Acquired(lease) = store.claim(&ask(number)).await? else {
        bail!("operation {number} is not free");
    };
    let recorded = Recorded::new(Class::Success, Format::FUNCTION, payload(number));
    let Fenced::Applied = store.complete(&lease, &recorded, RETENTION).await? else {
        bail!("operation {number} was lost");
    };
    Ok(())
}

pub(super) fn ask(number: u64) -> ClaimRequest {
    let key = Key::new(format!("order-{number}")).expect("a name is a key");
    ClaimRequest {
        key: ScopedKey::new(Scope::new("POST /orders"), &key),
        fingerprint: Fingerprint::empty(),
        nonce: Nonce::random(),
        lease: LEASE,
        on_lapse: OnLapse::Uncertain,
        attempts_max: 3,
        uncertain_retention: RETENTION,
    }
}

/// About 700 bytes, now and then more than fits on a page.
pub(super) fn payload(number: u64) -> Vec<u8> {
    let mut seed = Seed::new(number).part(11);
    let length = if seed.percent(2) { 6_000 } else { 300 + seed.below(800) };
    let mut bytes = vec![0; length as usize];
    seed.fill(&mut bytes);
    bytes
}
