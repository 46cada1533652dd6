//! The cost of one caller's claim among millions of records.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use hapax_core::{Claim, Store};
use hapax_store_file::FileStore;
use hapax_testkit::Random;
use tokio::runtime::Runtime;

use super::callers::{ask, spread};
use super::{Effort, Sample};

/// Records in the small store.
const SMALL: u64 = 10_000;

/// Callers that fill the stores: as many as fit into one commit.
const FILLERS: usize = 1024;

/// Keys that are made at a time while filling.
const FILL_STEP: u64 = 200_000;

/// Medians that are taken; each is of a second or so.
const TURNS: usize = 5;

/// Median latency of a claim in both stores.
#[derive(Clone, Debug, Default)]
pub struct Growth {
    /// Records in the large store.
    pub live_records: u64,
    /// How long it took to fill.
    pub filled_in: Duration,
    /// Microseconds in the small store.
    pub small_us: Sample,
    /// Microseconds in the large store.
    pub large_us: Sample,
    /// Large over small, turn by turn.
    pub ratio: Sample,
}

/// Fills a small and a large store through claims, then lets one caller claim in each by turns.
pub fn measure(runtime: &Runtime, effort: &Effort) -> Result<Growth> {
    let dirs = (tempfile::tempdir()?, tempfile::tempdir()?);
    let mut random = Random::seeded(5);
    let small = Arc::new(FileStore::open(dirs.0.path())?);
    runtime.block_on(fill(&small, SMALL, &mut random))?;
    let large = Arc::new(FileStore::open(dirs.1.path())?);
    let started = Instant::now();
    runtime.block_on(fill(&large, effort.live_records, &mut random))?;
    let mut growth =
        Growth { live_records: effort.live_records, filled_in: started.elapsed(), ..Growth::default() };
    for _ in 0..TURNS {
        let (small_us, large_us) =
            runtime.block_on(claim_latencies_us(&*small, &*large, effort.timed_claims, &mut random))?;
        growth.small_us.push(small_us);
        growth.large_us.push(large_us);
        growth.ratio.push(large_us / small_us);
    }
    Ok(growth)
}

async fn fill(store: &Arc<FileStore>, records: u64, random: &mut Random) -> Result<()> {
    let mut left = records;
    while left > 0 {
        let count = left.min(FILL_STEP);
        let ids: Vec<_> = (0..count).map(|_| random.bytes()).collect();
        let store = Arc::clone(store);
        spread(&ids, FILLERS, move |id| {
            let store = Arc::clone(&store);
            async move {
                ensure!(
                    matches!(store.claim(&ask(id)).await?, Claim::Acquired(_)),
                    "a fresh key was not acquired"
                );
                Ok(())
            }
        })
        .await?;
        left -= count;
    }
    Ok(())
}

/// Claims in both stores by turns, so that other load of the disk hits both alike.
pub async fn claim_latencies_us(
    small: &dyn Store,
    large: &dyn Store,
    claims: usize,
    random: &mut Random,
) -> Result<(f64, f64)> {
    let mut latencies = (Vec::with_capacity(claims), Vec::with_capacity(claims));
    for _ in 0..claims {
        latencies.0.push(claim_us(small, random).await?);
        latencies.1.push(claim_us(large, random).await?);
    }
    let median = |latencies: Vec<f64>| latencies.into_iter().collect::<Sample>().median();
    Ok((median(latencies.0), median(latencies.1)))
}

async fn claim_us(store: &dyn Store, random: &mut Random) -> Result<f64> {
    let ask = ask(random.bytes());
    let started = Instant::now();
    let claim = store.claim(&ask).await?;
    let latency = started.elapsed();
    ensure!(matches!(claim, Claim::Acquired(_)), "a fresh key was not acquired");
    Ok(latency.as_secs_f64() * 1e6)
}
