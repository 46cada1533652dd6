//! Sweeping: one batch of records that are due, removed in a transaction of its own and one round trip.

use hapax_core::{StoreError, Swept};
use tokio::time::timeout_at;
use tokio_postgres::{SimpleQueryMessage, SimpleQueryRow};

use crate::error::{Effect, Refusal};
use crate::link::Link;

/// The most records that one batch removes, whatever it is asked for: nobody should wait long for its rows.
const BATCH_MAX: usize = 1000;

/// Removes at most `batch_max` records.
pub(crate) async fn sweep(link: &Link, batch_max: usize) -> Result<Swept, StoreError> {
    let deadline = link.long_deadline();
    let lent = link.lend("sweep", deadline).await?;
    let statements = link.sql.sweep.replace("BATCH", &batch_max.min(BATCH_MAX).to_string());
    let told = timeout_at(deadline, lent.client().simple_query(&statements)).await;
    let told = lent.end("sweep", Effect::Write, told)?;
    let row = told.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    row.and_then(read).ok_or_else(|| Refusal::Answer.error("sweep", Effect::Write))
}

/// Values come as text where several statements are sent together.
fn read(row: &SimpleQueryRow) -> Option<Swept> {
    let text = |at| row.try_get(at).ok().flatten();
    let more = text(2)? == "t";
    Some(Swept { expired: text(0)?.parse().ok()?, dropped: text(1)?.parse().ok()?, more })
}
