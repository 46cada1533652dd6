//! The Redis store against a plain client of the same server: `cargo xtask bench redis`.
//!
//! | part | what is compared |
//! |---|---|
//! | fresh | a claim and a completion through the store, against `redis-benchmark` sending the same two commands |
//! | replay | a claim of a finished record, against `redis-benchmark` sending `GET` of a value as long |
//! | layer | CPU time of a service with the layer on the store, against the same service without it ([`Layer`]) |
//!
//! Both sides have as many callers, one thread, and a core that is not the server's. `redis-benchmark` has a connection
//! for each caller; the store shares one. Only ratios of one run are comparable between machines: the sides take turns,
//! round by round.

mod layer;
mod plain;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use hapax_core::{Claim, Class, Fenced, Format, Recorded, Store};
use hapax_store_redis::RedisStore;
use hapax_testkit::Random;
use hapax_testkit::servers::RedisServer;
use tokio::runtime::Runtime;

pub use self::layer::Layer;
use crate::bench_http::threads;
use crate::bench_store::callers::{ask, spread};
use plain::Plain;

/// Bytes of an outcome: a small JSON answer and its head.
const OUTCOME_BYTES: usize = 700;

/// Finished records that are replayed.
const REPLAYED: usize = 1000;

/// The server's core, and that of its clients.
const CORES: (usize, usize) = (0, 1);

/// The size of the measurement.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Concurrent callers.
    pub callers: usize,
    /// Operations of one side in one round.
    pub operations: usize,
}

/// What one round measured, per second.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    /// Claims with their completions through the store.
    pub fresh: f64,
    /// The same two commands by `redis-benchmark`, as pairs.
    pub plain_pairs: f64,
    /// Replays through the store.
    pub replay: f64,
    /// `GET` by `redis-benchmark`.
    pub plain_get: f64,
    /// CPU time of this process for a fresh operation, and for a replay, in microseconds.
    pub cpu_us: (f64, f64),
}

/// A server, and a runtime with one thread.
pub struct Bench {
    server: RedisServer,
    runtime: Runtime,
    effort: Effort,
}

impl Bench {
    /// Starts the server.
    ///
    /// # Errors
    /// When there is no runtime.
    pub fn start(effort: Effort) -> Result<Self> {
        threads::pin(CORES.0);
        let server = RedisServer::start();
        threads::pin(CORES.1);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { server, runtime, effort })
    }

    /// Measures both sides once.
    ///
    /// # Errors
    /// When a side cannot be measured.
    pub fn round(&self, seed: u64) -> Result<Round> {
        self.server.command(&["FLUSHALL"]);
        let store = Arc::new(self.runtime.block_on(RedisStore::connect(&self.server.url()))?);
        let (fresh, fresh_cpu) = self.fresh(&store, seed)?;
        let (replay, replay_cpu) = self.replay(&store, seed)?;
        let plain = Plain::new(&self.server, &self.runtime, &store, self.effort)?;
        let (claims, completions) = (plain.claims()?, plain.completions()?);
        let plain_pairs = 1.0 / (1.0 / claims + 1.0 / completions);
        let plain_get = plain.gets()?;
        Ok(Round { fresh, plain_pairs, replay, plain_get, cpu_us: (fresh_cpu, replay_cpu) })
    }

    /// Measures only the store, for a profiler.
    ///
    /// # Errors
    /// When it cannot be measured.
    pub fn store_alone(&self, seed: u64) -> Result<(f64, f64)> {
        self.server.command(&["FLUSHALL"]);
        let store = Arc::new(self.runtime.block_on(RedisStore::connect(&self.server.url()))?);
        Ok((self.fresh(&store, seed)?.0, self.replay(&store, seed)?.0))
    }

    fn fresh(&self, store: &Arc<RedisStore>, seed: u64) -> Result<(f64, f64)> {
        let mut random = Random::seeded(seed);
        let ids: Vec<[u8; 32]> = (0..self.effort.operations).map(|_| random.bytes()).collect();
        let done = Arc::new(done());
        let store = store.clone();
        self.timed(
            ids.len(),
            spread(&ids, self.effort.callers, move |id| {
                let (store, done) = (store.clone(), done.clone());
                async move { finish(&store, id, &done).await }
            }),
        )
    }

    fn replay(&self, store: &Arc<RedisStore>, seed: u64) -> Result<(f64, f64)> {
        let mut random = Random::seeded(!seed);
        let known: Vec<[u8; 32]> = (0..REPLAYED).map(|_| random.bytes()).collect();
        let done = done();
        self.runtime.block_on(async {
            for id in &known {
                finish(store, *id, &done).await?;
            }
            anyhow::Ok(())
        })?;
        let ids: Vec<[u8; 32]> = known.iter().copied().cycle().take(self.effort.operations).collect();
        let store = store.clone();
        self.timed(
            ids.len(),
            spread(&ids, self.effort.callers, move |id| {
                let store = store.clone();
                async move {
                    let answer = store.claim(&ask(id)).await?;
                    ensure!(matches!(answer, Claim::Replay { .. }), "a finished record was not replayed");
                    Ok(())
                }
            }),
        )
    }

    /// The rate, and the CPU time for each operation in microseconds.
    fn timed(&self, operations: usize, measured: impl Future<Output = Result<f64>>) -> Result<(f64, f64)> {
        let before = threads::cpu();
        let rate = self.runtime.block_on(measured)?;
        let ran = threads::cpu().saturating_sub(before);
        Ok((rate, ran.as_secs_f64() * 1e6 / operations as f64))
    }
}

/// Longer than the measurement, so that nothing lapses or expires.
const LONG: Duration = Duration::from_secs(24 * 3600);

fn done() -> Recorded {
    Recorded::new(Class::Success, Format::FUNCTION, vec![b'x'; OUTCOME_BYTES])
}

async fn finish(store: &RedisStore, id: [u8; 32], done: &Recorded) -> Result<()> {
    let claimed = store.claim(&ask(id)).await.context("a claim failed")?;
    let Claim::Acquired(lease) = claimed else { anyhow::bail!("a fresh key was not acquired") };
    let fenced = store.complete(&lease, done, LONG).await.context("a completion failed")?;
    ensure!(fenced == Fenced::Applied, "a completion was lost");
    Ok(())
}
