//! Claiming: one statement creates absent records and returns the existing ones.
//!
//! A connection never has two statements in flight, except inside a transaction. A pooler in transaction mode takes the
//! first reply for the end: up to pgbouncer 1.18, if a client goes away between the two replies, the second is delivered to
//! the next client on that connection as the reply to another statement.
//!
//! `hapax_core::transition` decides what a claim of an existing record means. If that changes the record, it is replaced on
//! condition that it is unchanged. All of this runs on any connection, also inside a caller's transaction.

use std::collections::HashMap;
use std::time::Duration;

use hapax_core::transition::{self, Change};
use hapax_core::{Claim, ClaimRequest, Fence, Lease, Record, RecordId, codec};
use tokio_postgres::types::Type;

use crate::error::Fault;
use crate::executor::{Executor, RowFields};
use crate::row::{self, FetchedRow, RowVersion, moment_ms, reason_number, span_ms, state_number};
use crate::sql::Sql;

/// How often a claim is retried on a record that keeps changing. After that the key counts as busy.
pub(crate) const ATTEMPTS_MAX: usize = 16;

/// Claims several distinct keys, sorted by id. Each claim has its own answer.
pub(crate) async fn claim<C: Executor>(
    client: &C,
    sql: &Sql,
    asks: &[&ClaimRequest],
    row_wait: Duration,
) -> Vec<Result<Claim, Fault>> {
    let busy = Claim::Busy { lease_left: Duration::ZERO };
    let mut answers: Vec<Result<Claim, Fault>> = asks.iter().map(|_| Ok(busy.clone())).collect();
    let mut open: Vec<usize> = (0..asks.len()).collect();
    for _ in 0..ATTEMPTS_MAX {
        let batch: Vec<&ClaimRequest> = open.iter().map(|at| asks[*at]).collect();
        let inserted = insert(client, sql, &batch, row_wait).await;
        let mut again = Vec::new();
        for at in open {
            match decide(client, sql, asks[at], &inserted, row_wait).await {
                Ok(Some(claim)) => answers[at] = Ok(claim),
                Ok(None) => again.push(at),
                Err(fault) => answers[at] = Err(fault),
            }
        }
        open = again;
        if open.is_empty() {
            break;
        }
    }
    answers
}

/// What the insertion found.
enum Insertion {
    /// The record was created.
    Created,
    Existing(Box<FetchedRow>),
}

/// The answer to one claim; `None` if the record was created, changed or removed concurrently and must be read again.
async fn decide<C: Executor>(
    client: &C,
    sql: &Sql,
    ask: &ClaimRequest,
    inserted: &Result<HashMap<RecordId, Insertion>, C::Error>,
    row_wait: Duration,
) -> Result<Option<Claim>, Fault> {
    let id = &ask.key.id;
    let found = match inserted.as_ref().map_err(C::classify_error)?.get(id) {
        Some(Insertion::Created) => {
            let fence = Fence { nonce: ask.nonce, attempt: 1 };
            return Ok(Some(Claim::Acquired(Lease { id: *id, fence, length: ask.lease })));
        }
        Some(Insertion::Existing(found)) => found,
        // A concurrent claim came first.
        None => return Ok(None),
    };
    let Ok(record) = &found.record else { return Ok(Some(Claim::Unreadable)) };
    let decision = transition::claim(Some(record), ask, found.now);
    let is_done = match &decision.change {
        Change::Put(next) => replace(client, sql, &found.seen, next, row_wait)
            .await
            .map_err(|error| C::classify_error(&error))?,
        Change::Keep | Change::Remove => true,
    };
    Ok(is_done.then_some(decision.answer))
}

/// Creates the absent records and returns the existing ones.
async fn insert<C: Executor>(
    client: &C,
    sql: &Sql,
    asks: &[&ClaimRequest],
    row_wait: Duration,
) -> Result<HashMap<RecordId, Insertion>, C::Error> {
    let of = |part: fn(&ClaimRequest) -> &[u8]| asks.iter().map(|ask| part(ask)).collect::<Vec<_>>();
    let spans =
        |span: fn(&ClaimRequest) -> Duration| asks.iter().map(|ask| span_ms(span(ask))).collect::<Vec<_>>();
    let algorithms: Vec<i16> = asks.iter().map(|ask| ask.fingerprint.algorithm().into()).collect();
    let principals: Vec<Option<&[u8]>> = asks
        .iter()
        .map(|ask| ask.key.scope.principal_hash().map(|principal| principal.as_bytes().as_slice()))
        .collect();
    let rows = client
        .fetch_rows(
            &sql.claim,
            &[
                (&of(|ask| ask.key.id.as_bytes()), Type::BYTEA_ARRAY),
                (&of(|ask| ask.nonce.as_bytes()), Type::BYTEA_ARRAY),
                (&spans(|ask| ask.lease), Type::INT8_ARRAY),
                (&spans(|ask| ask.uncertain_retention), Type::INT8_ARRAY),
                (&algorithms, Type::INT2_ARRAY),
                (&of(|ask| ask.fingerprint.digest()), Type::BYTEA_ARRAY),
                (&of(|ask| ask.key.scope.namespace().as_bytes()), Type::BYTEA_ARRAY),
                (&principals, Type::BYTEA_ARRAY),
                (&of(|ask| ask.key.scope.operation().as_bytes()), Type::BYTEA_ARRAY),
                (&wait_ms(row_wait), Type::TEXT),
            ],
        )
        .await?;
    rows.iter().filter_map(|row| read_insertion(row).transpose()).collect()
}

/// Reads a returned row; `None` if its id has the wrong length.
fn read_insertion<R: RowFields>(row: &R) -> Result<Option<(RecordId, Insertion)>, R::Error> {
    match row.field::<Option<&[u8]>>("made")? {
        Some(made) => Ok(made.try_into().ok().map(|id| (RecordId::from_bytes(id), Insertion::Created))),
        None => Ok(row::read(row)?.map(|(id, found)| (id, Insertion::Existing(found.into())))),
    }
}

/// Reads the existing records.
pub(crate) async fn fetch<C: Executor>(
    client: &C,
    sql: &Sql,
    ids: &[RecordId],
) -> Result<HashMap<RecordId, FetchedRow>, C::Error> {
    let ids: Vec<&[u8]> = ids.iter().map(|id| id.as_bytes().as_slice()).collect();
    let rows = client.fetch_rows(&sql.fetch, &[(&ids, Type::BYTEA_ARRAY)]).await?;
    rows.iter().filter_map(|row| row::read(row).transpose()).collect()
}

/// Replaces the row with `next`; false if it has changed.
pub(crate) async fn replace<C: Executor>(
    client: &C,
    sql: &Sql,
    seen: &RowVersion,
    next: &Record,
    row_wait: Duration,
) -> Result<bool, C::Error> {
    let (lease_until, reason) = match &next.status {
        hapax_core::Status::InProgress { lease_until } => (moment_ms(*lease_until), 0),
        hapax_core::Status::Uncertain { reason } => (0, reason_number(*reason)),
        _ => (0, 0),
    };
    let (id, nonce) = (&next.key.id, next.fence.nonce);
    let outcome = next.recorded().map(|recorded| codec::encode_outcome(id, nonce, recorded));
    let digest = next.fingerprint.digest().as_slice();
    let rows = client
        .fetch_rows(
            &sql.replace,
            &[
                (&id.as_bytes().as_slice(), Type::BYTEA),
                (&seen.nonce, Type::BYTEA),
                (&seen.state, Type::INT2),
                (&seen.lease_until, Type::INT8),
                (&seen.updated_at, Type::INT8),
                (&seen.expires_at, Type::INT8),
                (&state_number(next.state()), Type::INT2),
                (&reason, Type::INT2),
                (&nonce.as_bytes().as_slice(), Type::BYTEA),
                (&i64::from(next.fence.attempt), Type::INT8),
                (&i64::from(next.takeovers), Type::INT8),
                (&lease_until, Type::INT8),
                (&moment_ms(next.created_at), Type::INT8),
                (&moment_ms(next.updated_at), Type::INT8),
                (&moment_ms(next.expires_at), Type::INT8),
                (&i16::from(next.fingerprint.algorithm()), Type::INT2),
                (&digest, Type::BYTEA),
                (&outcome, Type::BYTEA),
                (&wait_ms(row_wait), Type::TEXT),
                (&sql.channel, Type::TEXT),
            ],
        )
        .await?;
    Ok(!rows.is_empty())
}

/// Removes the row; false if it has changed.
pub(crate) async fn remove<C: Executor>(
    client: &C,
    sql: &Sql,
    id: &RecordId,
    seen: &RowVersion,
    row_wait: Duration,
) -> Result<bool, C::Error> {
    let rows = client
        .fetch_rows(
            &sql.remove,
            &[
                (&id.as_bytes().as_slice(), Type::BYTEA),
                (&seen.nonce, Type::BYTEA),
                (&seen.state, Type::INT2),
                (&seen.lease_until, Type::INT8),
                (&seen.updated_at, Type::INT8),
                (&seen.expires_at, Type::INT8),
                (&wait_ms(row_wait), Type::TEXT),
                (&sql.channel, Type::TEXT),
            ],
        )
        .await?;
    Ok(!rows.is_empty())
}

/// The id in a row; `None` if it has the wrong length.
pub(crate) fn id_of<R: RowFields>(row: &R) -> Result<Option<RecordId>, R::Error> {
    Ok(row.field::<&[u8]>("id")?.try_into().ok().map(RecordId::from_bytes))
}

/// The lock timeout of a statement, as the setting is written. Zero would mean no timeout.
pub(crate) fn wait_ms(row_wait: Duration) -> String {
    row_wait.as_millis().max(1).to_string()
}
