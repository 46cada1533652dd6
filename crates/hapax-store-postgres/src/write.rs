//! Writes by the owner of a record: renewals, completions, abandonments and releases, many in one statement.
//!
//! `sql/write.sql` implements the same rules as `hapax_core::transition`, and `sql/complete_one.sql` those of a completion:
//! for the one completion that ends a transaction of its own.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use hapax_core::store::TOMBSTONE_RETENTION;
use hapax_core::{Fenced, Lease, Nonce, Reason, RecordId, Recorded, State, codec};
use tokio_postgres::types::Type;

use crate::claim::{id_of, wait_ms};
use crate::error::Fault;
use crate::executor::{Executor, RowFields};
use crate::row::{self, pinned, reason_number, span_ms, state_number};
use crate::sql::Sql;

/// One write by the attempt that holds a record.
pub(crate) struct Write {
    pub(crate) op: &'static str,
    pub(crate) id: RecordId,
    nonce: Nonce,
    /// The resulting state. A renewal does not change it.
    to: State,
    reason: i16,
    /// The lease or the retention, from now.
    span: Duration,
    outcome: Option<Vec<u8>>,
}

impl Write {
    pub(crate) fn renew(lease: &Lease) -> Self {
        Self::new("renew", lease, State::InProgress, lease.length)
    }

    pub(crate) fn complete(lease: &Lease, done: &Recorded, retention: Duration) -> Self {
        let outcome = Some(codec::encode_outcome(&lease.id, lease.fence.nonce, done));
        Self { outcome, ..Self::new("complete", lease, pinned(done), retention) }
    }

    pub(crate) fn release(lease: &Lease, answered: Option<&Recorded>) -> Self {
        let outcome = answered.map(|done| codec::encode_outcome(&lease.id, lease.fence.nonce, done));
        Self { outcome, ..Self::new("release", lease, State::Released, TOMBSTONE_RETENTION) }
    }

    pub(crate) fn abandon(lease: &Lease, reason: Reason) -> Self {
        let reason = reason_number(reason);
        Self { reason, ..Self::new("abandon", lease, State::Uncertain, Duration::ZERO) }
    }

    fn new(op: &'static str, lease: &Lease, to: State, span: Duration) -> Self {
        Self { op, id: lease.id, nonce: lease.fence.nonce, to, reason: 0, span, outcome: None }
    }

    /// The approximate number of bytes it sends.
    pub(crate) fn bytes(&self) -> usize {
        self.outcome.as_ref().map_or(0, Vec::len)
    }

    /// Whether this state of a record that the attempt holds shows that the write was applied before.
    fn was_applied(&self, state: State) -> bool {
        match self.to {
            State::InProgress => false,
            State::Completed | State::Failed => state.is_terminal(),
            State::Uncertain | State::Released => state == self.to,
        }
    }

    /// The answer to a write that changed nothing. Rare: another attempt holds the record, or the reply to the same write was
    /// lost before.
    fn answer_by_holder(&self, holder: Option<&Holder>) -> Result<Fenced, Fault> {
        match holder {
            Some(Holder { is_whole: false, .. }) => Err(Fault::unreadable()),
            Some(holder) if holder.nonce == *self.nonce.as_bytes() => match row::state(holder.state) {
                Some(state) if self.was_applied(state) => Ok(Fenced::Applied),
                Some(_) => Ok(Fenced::Lost),
                None => Err(Fault::unreadable()),
            },
            _ => Ok(Fenced::Lost),
        }
    }
}

/// Applies several writes to different records, sorted by id. Each has its own answer.
pub(crate) async fn write<C: Executor>(
    client: &C,
    sql: &Sql,
    writes: &[&Write],
    row_wait: Duration,
) -> Vec<Result<Fenced, Fault>> {
    let all = |fault: Fault| writes.iter().map(|_| Err(fault.clone())).collect();
    let applied = match apply(client, sql, writes, row_wait).await {
        Ok(applied) => applied,
        Err(error) => return all(C::classify_error(&error)),
    };
    let missed: Vec<RecordId> =
        writes.iter().map(|write| write.id).filter(|id| !applied.contains(id)).collect();
    if missed.is_empty() {
        return writes.iter().map(|_| Ok(Fenced::Applied)).collect();
    }
    let holders = holders(client, sql, &missed).await;
    let answer = |write: &&Write| {
        if applied.contains(&write.id) {
            return Ok(Fenced::Applied);
        }
        write.answer_by_holder(holders.as_ref().map_err(C::classify_error)?.get(&write.id))
    };
    writes.iter().map(answer).collect()
}

/// Applies one completion, inside the transaction that it ends.
pub(crate) async fn complete_one<C: Executor>(
    client: &C,
    sql: &Sql,
    completion: &Write,
    row_wait: Duration,
) -> Result<Fenced, Fault> {
    debug_assert!(matches!(completion.to, State::Completed | State::Failed), "{}", completion.op);
    let written = client
        .fetch_rows(
            &sql.complete_one,
            &[
                (&completion.id.as_bytes().as_slice(), Type::BYTEA),
                (&completion.nonce.as_bytes().as_slice(), Type::BYTEA),
                (&state_number(completion.to), Type::INT2),
                (&span_ms(completion.span), Type::INT8),
                (&completion.outcome.as_deref(), Type::BYTEA),
                (&wait_ms(row_wait), Type::TEXT),
                (&sql.channel, Type::TEXT),
            ],
        )
        .await
        .map_err(|error| C::classify_error(&error))?;
    if !written.is_empty() {
        return Ok(Fenced::Applied);
    }
    let holders = holders(client, sql, &[completion.id]).await;
    let holders = holders.map_err(|error| C::classify_error(&error))?;
    completion.answer_by_holder(holders.get(&completion.id))
}

async fn apply<C: Executor>(
    client: &C,
    sql: &Sql,
    writes: &[&Write],
    row_wait: Duration,
) -> Result<HashSet<RecordId>, C::Error> {
    let ids: Vec<&[u8]> = writes.iter().map(|write| write.id.as_bytes().as_slice()).collect();
    let nonces: Vec<&[u8]> = writes.iter().map(|write| write.nonce.as_bytes().as_slice()).collect();
    let states: Vec<i16> = writes.iter().map(|write| state_number(write.to)).collect();
    let reasons: Vec<i16> = writes.iter().map(|write| write.reason).collect();
    let spans: Vec<i64> = writes.iter().map(|write| span_ms(write.span)).collect();
    let outcomes: Vec<Option<&[u8]>> = writes.iter().map(|write| write.outcome.as_deref()).collect();
    let rows = client
        .fetch_rows(
            &sql.write,
            &[
                (&ids, Type::BYTEA_ARRAY),
                (&nonces, Type::BYTEA_ARRAY),
                (&states, Type::INT2_ARRAY),
                (&reasons, Type::INT2_ARRAY),
                (&spans, Type::INT8_ARRAY),
                (&outcomes, Type::BYTEA_ARRAY),
                (&wait_ms(row_wait), Type::TEXT),
                (&sql.channel, Type::TEXT),
            ],
        )
        .await?;
    rows.iter().filter_map(|row| id_of(row).transpose()).collect()
}

struct Holder {
    nonce: Vec<u8>,
    state: i16,
    is_whole: bool,
}

async fn holders<C: Executor>(
    client: &C,
    sql: &Sql,
    ids: &[RecordId],
) -> Result<HashMap<RecordId, Holder>, C::Error> {
    let ids: Vec<&[u8]> = ids.iter().map(|id| id.as_bytes().as_slice()).collect();
    let rows = client.fetch_rows(&sql.holder, &[(&ids, Type::BYTEA_ARRAY)]).await?;
    let mut holders = HashMap::with_capacity(rows.len());
    for row in &rows {
        let holder = Holder {
            nonce: row.field("nonce")?,
            state: row.field("state")?,
            is_whole: row.field("is_whole")?,
        };
        if let Some(id) = id_of(row)? {
            holders.insert(id, holder);
        }
    }
    Ok(holders)
}
