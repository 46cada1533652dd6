//! Sweeping: removes one batch of expired records in one transaction and one round trip.

use hapax_core::{StoreError, Swept};
use tokio::time::timeout_at;
use tokio_postgres::{SimpleQueryMessage, SimpleQueryRow};

use crate::error::{CallFailure, Effect};
use crate::pool::ConnectionPool;

/// The batch limit: other calls must not wait long for the locked rows.
const BATCH_MAX: usize = 1000;

/// Removes at most `batch_max` records.
pub(crate) async fn sweep(pool: &ConnectionPool, batch_max: usize) -> Result<Swept, StoreError> {
    let deadline = pool.long_deadline();
    let connection = pool.acquire("sweep", deadline).await?;
    let statements = pool.sql.sweep.replace("BATCH", &batch_max.min(BATCH_MAX).to_string());
    let reply = timeout_at(deadline, connection.client().simple_query(&statements)).await;
    let reply = connection.end("sweep", Effect::Write, reply)?;
    let row = reply.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    row.and_then(read).ok_or_else(|| CallFailure::Answer.error("sweep", Effect::Write))
}

/// Values come as text in the simple query protocol.
fn read(row: &SimpleQueryRow) -> Option<Swept> {
    let text = |at| row.try_get(at).ok().flatten();
    let more = text(2)? == "t";
    Some(Swept { expired: text(0)?.parse().ok()?, dropped: text(1)?.parse().ok()?, more })
}
