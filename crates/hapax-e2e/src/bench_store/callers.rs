//! The file store and a plain SQLite table, both under group commit, with 1 to 256 concurrent callers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use hapax_core::{
    Claim, ClaimRequest, Class, Fenced, Fingerprint, Format, Nonce, OnLapse, RecordId, Recorded, Scope,
    ScopedKey, Store,
};
use hapax_store_file::FileStore;
use tokio::runtime::Runtime;

use super::group::Group;
use super::layout::{Id, Kind};
use super::{Effort, Pairs, Sample};

/// Concurrent callers.
pub const CALLERS: [usize; 4] = [1, 8, 64, 256];

/// Longer than the measurement, so that nothing lapses or expires.
const LONG: Duration = Duration::from_secs(24 * 3600);

/// Pairs a second for each of [`CALLERS`].
#[derive(Clone, Debug, Default)]
pub struct ByCallers {
    /// The file store.
    pub file: [Sample; 4],
    /// The plain SQLite table under the same batching.
    pub naive: [Sample; 4],
    /// The file store's layout under the same batching, without what makes it a store.
    pub two_tables: [Sample; 4],
    /// File store over plain table, round by round.
    pub ratio: [Sample; 4],
}

/// Measures both, turn by turn.
pub fn measure(runtime: &Runtime, effort: &Effort) -> Result<ByCallers> {
    let mut measured = ByCallers::default();
    for round in 0..effort.rounds {
        for (column, &callers) in CALLERS.iter().enumerate() {
            let pairs = Arc::new(Pairs::new(round as u64, effort.pairs(callers)));
            let file = runtime.block_on(file_turn(&pairs, callers))?;
            let naive = runtime.block_on(group_turn(Kind::SqliteNaive, &pairs, callers))?;
            let two_tables = runtime.block_on(group_turn(Kind::SqliteTwoTables, &pairs, callers))?;
            measured.file[column].push(file);
            measured.naive[column].push(naive);
            measured.two_tables[column].push(two_tables);
            measured.ratio[column].push(file / naive);
        }
    }
    Ok(measured)
}

/// A claim of `id` as the engine would send it.
pub fn ask(id: Id) -> ClaimRequest {
    let mut nonce = [0; 16];
    nonce.copy_from_slice(&id[..16]);
    ClaimRequest {
        key: ScopedKey { scope: Scope::new("POST /orders"), id: RecordId::from_bytes(id) },
        fingerprint: Fingerprint::from_parts(1, id),
        nonce: Nonce::from_bytes(nonce),
        lease: LONG,
        on_lapse: OnLapse::Uncertain,
        attempts_max: 1,
        uncertain_retention: LONG,
    }
}

/// Splits the keys among `callers` tasks and runs `each` on every key. Returns keys per second.
pub async fn spread<F>(
    ids: &[Id],
    callers: usize,
    each: impl Fn(Id) -> F + Clone + Send + 'static,
) -> Result<f64>
where
    F: Future<Output = Result<()>> + Send,
{
    let shares: Vec<Vec<Id>> = ids.chunks(ids.len().div_ceil(callers)).map(<[Id]>::to_vec).collect();
    let started = Instant::now();
    let tasks: Vec<_> = shares
        .into_iter()
        .map(|share| {
            let each = each.clone();
            tokio::spawn(async move {
                for id in share {
                    each(id).await?;
                }
                anyhow::Ok(())
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    Ok(ids.len() as f64 / started.elapsed().as_secs_f64())
}

async fn file_turn(pairs: &Pairs, callers: usize) -> Result<f64> {
    let dir = tempfile::tempdir()?;
    let store = Arc::new(FileStore::open(dir.path())?);
    let done = Arc::new(Recorded::new(Class::Success, Format::FUNCTION, pairs.outcome.clone()));
    spread(&pairs.ids, callers, move |id| {
        let (store, done) = (Arc::clone(&store), Arc::clone(&done));
        async move {
            let Claim::Acquired(lease) = store.claim(&ask(id)).await? else {
                anyhow::bail!("a fresh key was not acquired");
            };
            let fenced = store.complete(&lease, &done, LONG).await?;
            ensure!(fenced == Fenced::Applied, "a completion was lost");
            Ok(())
        }
    })
    .await
}

async fn group_turn(kind: Kind, pairs: &Arc<Pairs>, callers: usize) -> Result<f64> {
    let dir = tempfile::tempdir()?;
    let group = Arc::new(Group::start(kind.open(dir.path())?));
    let shared = Arc::clone(pairs);
    spread(&pairs.ids, callers, move |id| {
        let (group, pairs) = (Arc::clone(&group), Arc::clone(&shared));
        async move {
            group.apply(pairs.claim(id)).await?;
            group.apply(pairs.completion(id)).await
        }
    })
    .await
}
