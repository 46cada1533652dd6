//! How fast the PostgreSQL store is: `cargo xtask bench postgres`.
//!
//! | part | what is compared |
//! |---|---|
//! | here | many callers' claims and completions through the store, against `pgbench` with one commit for each |
//! | [`growth`] | one caller's claim among many records against the same among few; the sweep against concurrent claims |
//!
//! Both sides have the same server, table and number of connections, and every commit is synced. Only ratios of one run
//! are comparable between machines: the sides take turns, round by round.

pub mod growth;
mod plain;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use hapax_core::{Claim, Class, Fenced, Format, Recorded, Store};
use hapax_store_postgres::PostgresStore;
use hapax_testkit::Random;
use hapax_testkit::servers::PostgresServer;
use tokio::runtime::Runtime;

use crate::bench_http::threads;
use crate::bench_store::callers::{ask, spread};

/// Bytes of an outcome: a small JSON answer and its head.
const OUTCOME_BYTES: usize = 700;

/// Longer than the measurement, so that nothing lapses, expires or times out.
const LONG: Duration = Duration::from_secs(24 * 3600);
const TIMEOUT: Duration = Duration::from_secs(60);

/// The size of the measurement.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Concurrent callers of the store.
    pub callers: usize,
    /// Claims with their completions through the store in one round.
    pub operations: usize,
    /// Connections of either side.
    pub connections: usize,
    /// How long `pgbench` runs in one round.
    pub plain_seconds: u64,
}

/// What one round measured, per second.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    /// Claims with their completions through the store.
    pub coalesced: f64,
    /// The same by `pgbench`, one row and one commit each.
    pub plain: f64,
    /// CPU time of this process for a pair, in microseconds.
    pub cpu_us: f64,
}

/// A server, and a runtime with one thread.
pub struct Bench {
    server: PostgresServer,
    runtime: Runtime,
    effort: Effort,
}

impl Bench {
    /// Starts the server.
    ///
    /// # Errors
    /// When there is no runtime.
    pub fn start(effort: Effort) -> Result<Self> {
        // Room for the indexes of the large table, and for the log between two checkpoints, as on a server for so many
        // records.
        let options = PostgresServer::options().durable();
        let server = options.setting("shared_buffers", "2GB").setting("max_wal_size", "8GB").start();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { server, runtime, effort })
    }

    /// Measures both sides once, each on an empty table.
    ///
    /// # Errors
    /// When a side cannot be measured.
    pub fn round(&self, seed: u64) -> Result<Round> {
        let store = self.store("hapax")?;
        self.empty();
        let mut random = Random::seeded(seed);
        let ids: Vec<[u8; 32]> = (0..self.effort.operations).map(|_| random.bytes()).collect();
        let before = threads::cpu();
        let coalesced = self.runtime.block_on(pairs(&store, &ids, self.effort.callers))?;
        let ran = threads::cpu().saturating_sub(before);
        self.empty();
        let plain = plain::pairs(&self.server, self.effort)?;
        Ok(Round { coalesced, plain, cpu_us: ran.as_secs_f64() * 1e6 / ids.len() as f64 })
    }

    fn store(&self, schema: &str) -> Result<Arc<PostgresStore>> {
        let options = PostgresStore::options(&self.server.url())?;
        let options = options.schema(schema).pool(self.effort.connections).timeout(TIMEOUT);
        Ok(Arc::new(self.runtime.block_on(options.connect())?))
    }

    /// Truncates the table and checkpoints, so that neither side pays for the other's records.
    fn empty(&self) {
        self.server.sql("TRUNCATE hapax.record");
        self.server.sql("CHECKPOINT");
    }
}

/// Claims and completes all of them. Returns pairs per second.
async fn pairs(store: &Arc<PostgresStore>, ids: &[[u8; 32]], callers: usize) -> Result<f64> {
    let done = Arc::new(Recorded::new(Class::Success, Format::FUNCTION, vec![b'x'; OUTCOME_BYTES]));
    let store = store.clone();
    spread(ids, callers, move |id| {
        let (store, done) = (store.clone(), done.clone());
        async move {
            let claimed = store.claim(&ask(id)).await.context("a claim failed")?;
            let Claim::Acquired(lease) = claimed else { anyhow::bail!("a fresh key was not acquired") };
            let fenced = store.complete(&lease, &done, LONG).await.context("a completion failed")?;
            ensure!(fenced == Fenced::Applied, "a completion was lost");
            Ok(())
        }
    })
    .await
}
