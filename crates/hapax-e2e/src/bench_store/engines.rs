//! The layouts compared, in batches of 1, 8, 64 and 256, driven by one thread.

use std::time::Instant;

use anyhow::Result;
use rusqlite::params;

use super::layout::sqlite_naive::{self, UPSERT};
use super::layout::{Id, Kind, Layout, Write};
use super::{Effort, Pairs, Sample};

/// Operations in one commit.
pub const BATCHES: [usize; 4] = [1, 8, 64, 256];

/// One line of the table.
#[derive(Clone, Debug)]
pub struct Row {
    /// The layout.
    pub name: &'static str,
    /// Pairs a second for each of [`BATCHES`].
    pub pairs: [Sample; 4],
}

/// Measures every layout of this build, and the first one's statements without a harness.
pub fn measure(effort: &Effort) -> Result<Vec<Row>> {
    let row = |name| Row { name, pairs: Default::default() };
    let mut rows: Vec<Row> = Kind::ALL.iter().map(|kind| row(kind.name())).collect();
    rows.push(row("raw driver loop"));
    for round in 0..effort.rounds {
        for (column, &batch) in BATCHES.iter().enumerate() {
            let pairs = Pairs::new(round as u64, effort.pairs(batch));
            for (row, kind) in rows.iter_mut().zip(Kind::ALL) {
                row.pairs[column].push(layout_turn(*kind, &pairs, batch)?);
            }
            if let Some(raw) = rows.last_mut() {
                raw.pairs[column].push(raw_turn(&pairs, batch)?);
            }
        }
    }
    Ok(rows)
}

fn layout_turn(kind: Kind, pairs: &Pairs, batch: usize) -> Result<f64> {
    let dir = tempfile::tempdir()?;
    let mut layout = kind.open(dir.path())?;
    let started = Instant::now();
    for ids in pairs.ids.chunks(batch) {
        apply(&mut *layout, ids, |id| pairs.claim(id))?;
        apply(&mut *layout, ids, |id| pairs.completion(id))?;
    }
    Ok(pairs.ids.len() as f64 / started.elapsed().as_secs_f64())
}

fn apply(layout: &mut dyn Layout, ids: &[Id], write: impl Fn(Id) -> Write) -> Result<()> {
    let batch: Vec<Write> = ids.iter().map(|id| write(*id)).collect();
    layout.apply(&batch)
}

/// The plain table as fast as the driver alone can fill it, so that the baseline is not slowed by the harness.
fn raw_turn(pairs: &Pairs, batch: usize) -> Result<f64> {
    let dir = tempfile::tempdir()?;
    let connection = sqlite_naive::connect(dir.path())?;
    let mut upsert = connection.prepare(UPSERT)?;
    let started = Instant::now();
    for ids in pairs.ids.chunks(batch) {
        connection.execute_batch("BEGIN")?;
        for id in ids {
            upsert.execute(params![id, &pairs.claim[..], None::<&[u8]>])?;
        }
        connection.execute_batch("COMMIT; BEGIN")?;
        for id in ids {
            upsert.execute(params![id, &pairs.completed[..], Some(&pairs.outcome[..])])?;
        }
        connection.execute_batch("COMMIT")?;
    }
    Ok(pairs.ids.len() as f64 / started.elapsed().as_secs_f64())
}
