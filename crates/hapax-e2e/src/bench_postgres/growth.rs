//! The cost of millions of records: one caller's claim, and whether a sweep keeps up with new records.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use hapax_core::Store as _;
use hapax_store_postgres::PostgresStore;
use hapax_testkit::Random;

use super::{Bench, OUTCOME_BYTES, pairs};
use crate::bench_store::Sample;
use crate::bench_store::growth::claim_latencies_us;

/// Records in the small table.
const SMALL: u64 = 10_000;

/// Medians that are taken, and the claims in each table for one median.
const TURNS: usize = 5;
const CLAIMS: usize = 1_000;

/// Records that one call of the sweep removes.
const SWEEP: usize = 1_000;

/// Due records for each new one, so that the sweep has work for most of the time.
const DUE_FOR_EACH: u64 = 8;

/// A day ahead, and a day ago.
const LATER_MS: i64 = 86_400_000;
const DUE_MS: i64 = -LATER_MS;

/// Bytes of an outcome in the large table: ten million must fit on a disk.
const OUTCOME_SMALL: usize = 0;

const FILL: &str = include_str!("fill.sql");

/// The figures of a small and a large table.
#[derive(Clone, Debug, Default)]
pub struct Growth {
    /// How long it took to fill the large table.
    pub filled_in: Duration,
    /// Microseconds of a claim in the small table.
    pub small_us: Sample,
    /// Microseconds of a claim in the large table.
    pub large_us: Sample,
    /// Large over small, turn by turn.
    pub ratio: Sample,
    /// Pairs per second that callers added to the large table without a sweep.
    pub added_alone: f64,
    /// The same during a sweep.
    pub added: f64,
    /// Records per second that the sweep removed meanwhile, as long as any were due.
    pub swept: f64,
}

impl Growth {
    /// Records that the sweep removes for each that callers add at their best rate, with or without it. Compared with the
    /// rate during the sweep alone, a sweep that slows callers down would look better.
    pub fn sweep_ratio(&self) -> f64 {
        self.swept / self.added.max(self.added_alone)
    }
}

impl Bench {
    /// Fills a small and a large table and lets one caller claim in each by turns. Then many callers add to the large one,
    /// without and during a sweep. The swept records are as large as the new ones.
    ///
    /// # Errors
    /// When something cannot be measured.
    pub fn growth(&self, live_records: u64) -> Result<Growth> {
        let (small, large) = (self.store("small")?, self.store("large")?);
        self.fill("small", SMALL, LATER_MS, OUTCOME_SMALL);
        let began = Instant::now();
        self.fill("large", live_records, LATER_MS, OUTCOME_SMALL);
        let mut growth = Growth { filled_in: began.elapsed(), ..Growth::default() };
        self.settle();
        let mut random = Random::seeded(5);
        for _ in 0..TURNS {
            let claiming = claim_latencies_us(&*small, &*large, CLAIMS, &mut random);
            let (small_us, large_us) = self.runtime.block_on(claiming)?;
            growth.small_us.push(small_us);
            growth.large_us.push(large_us);
            growth.ratio.push(large_us / small_us);
        }
        self.fill("large", self.effort.operations as u64 * DUE_FOR_EACH, DUE_MS, OUTCOME_BYTES);
        self.settle();
        let mut ids = || -> Vec<[u8; 32]> { (0..self.effort.operations).map(|_| random.bytes()).collect() };
        growth.added_alone = self.runtime.block_on(pairs(&large, &ids(), self.effort.callers))?;
        self.settle();
        (growth.added, growth.swept) =
            self.runtime.block_on(added_and_swept(&large, &ids(), self.effort.callers))?;
        Ok(growth)
    }

    fn fill(&self, schema: &str, count: u64, due_ms: i64, outcome_bytes: usize) {
        let comments = |line: &&str| !line.starts_with("--");
        let fill = FILL.lines().filter(comments).collect::<Vec<_>>().join("\n");
        let fill = fill.replace("SCHEMA", schema).replace("COUNT", &count.to_string());
        let fill = fill.replace("OUTCOME", &outcome_bytes.to_string());
        self.server.sql(&fill.replace("DUE", &format!("({due_ms})::bigint")));
    }

    /// Finishes the background work of filling before the measurement.
    fn settle(&self) {
        self.server.sql("VACUUM ANALYZE");
        self.server.sql("CHECKPOINT");
    }
}

/// Pairs per second by many callers, and records per second that were swept meanwhile.
async fn added_and_swept(store: &Arc<PostgresStore>, ids: &[[u8; 32]], callers: usize) -> Result<(f64, f64)> {
    let is_over = Arc::new(AtomicBool::new(false));
    let (sweeper, until) = (store.clone(), is_over.clone());
    let sweeping = tokio::spawn(async move {
        let (began, mut removed) = (Instant::now(), 0);
        while !until.load(Ordering::Relaxed) {
            let swept = sweeper.sweep(SWEEP).await?;
            removed += swept.expired + swept.dropped;
            if !swept.more {
                break;
            }
        }
        ensure!(removed > 0, "nothing was swept");
        anyhow::Ok(removed as f64 / began.elapsed().as_secs_f64())
    });
    let added = pairs(store, ids, callers).await;
    is_over.store(true, Ordering::Relaxed);
    Ok((added?, sweeping.await??))
}
