//! Claiming: one statement creates records and tells about those that were there.
//!
//! A connection never has two statements under way, unless inside a transaction. A pooler that hands out connections for
//! a transaction takes the first answer for the end: up to pgbouncer 1.18, when a client goes away between the two
//! answers, the second is given to whoever is next on that connection, as the answer to something else.
//!
//! What a claim of an existing record means is for `hapax_core::transition` to say. Where that changes the record, it is
//! replaced on condition that nobody else has changed it. All of this runs on any connection, also on one that is
//! inside a transaction of its owner.

use std::collections::HashMap;
use std::time::Duration;

use hapax_core::transition::{self, Change};
use hapax_core::{Claim, ClaimRequest, Fence, Lease, Record, RecordId, codec};
use tokio_postgres::types::Type;

use crate::connection::{Connection, Fields};
use crate::error::Fault;
use crate::row::{self, Found, Seen, moment_ms, reason_number, span_ms, state_number};
use crate::sql::Sql;

/// How often a record is looked at again that others keep changing. Then somebody is at work on it, and that is told.
pub(crate) const ROUNDS_MAX: usize = 16;

/// Claims several keys, each of which occurs once, sorted by id. Every claim has an answer of its own.
pub(crate) async fn claim<C: Connection>(
    client: &C,
    sql: &Sql,
    asks: &[&ClaimRequest],
    row_wait: Duration,
) -> Vec<Result<Claim, Fault>> {
    let busy = Claim::Busy { lease_left: Duration::ZERO };
    let mut answers: Vec<Result<Claim, Fault>> = asks.iter().map(|_| Ok(busy.clone())).collect();
    let mut open: Vec<usize> = (0..asks.len()).collect();
    for _ in 0..ROUNDS_MAX {
        let batch: Vec<&ClaimRequest> = open.iter().map(|at| asks[*at]).collect();
        let met = insert(client, sql, &batch, row_wait).await;
        let mut again = Vec::new();
        for at in open {
            match decide(client, sql, asks[at], &met, row_wait).await {
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

/// What a claim met.
enum Met {
    /// Nothing: the record is made.
    Nothing,
    Record(Box<Found>),
}

/// The answer to one claim; `None` when the record came, changed or went meanwhile and must be looked at again.
async fn decide<C: Connection>(
    client: &C,
    sql: &Sql,
    ask: &ClaimRequest,
    met: &Result<HashMap<RecordId, Met>, C::Error>,
    row_wait: Duration,
) -> Result<Option<Claim>, Fault> {
    let id = &ask.key.id;
    let found = match met.as_ref().map_err(C::fault)?.get(id) {
        Some(Met::Nothing) => {
            let fence = Fence { nonce: ask.nonce, attempt: 1 };
            return Ok(Some(Claim::Acquired(Lease { id: *id, fence, length: ask.lease })));
        }
        Some(Met::Record(found)) => found,
        // Another claim was quicker.
        None => return Ok(None),
    };
    let Ok(record) = &found.record else { return Ok(Some(Claim::Unreadable)) };
    let decision = transition::claim(Some(record), ask, found.now);
    let is_done = match &decision.change {
        Change::Put(next) => {
            replace(client, sql, &found.seen, next, row_wait).await.map_err(|error| C::fault(&error))?
        }
        Change::Keep | Change::Remove => true,
    };
    Ok(is_done.then_some(decision.answer))
}

/// Creates the records that are not there yet and tells what the others hold.
async fn insert<C: Connection>(
    client: &C,
    sql: &Sql,
    asks: &[&ClaimRequest],
    row_wait: Duration,
) -> Result<HashMap<RecordId, Met>, C::Error> {
    let of = |part: fn(&ClaimRequest) -> &[u8]| asks.iter().map(|ask| part(ask)).collect::<Vec<_>>();
    let spans =
        |span: fn(&ClaimRequest) -> Duration| asks.iter().map(|ask| span_ms(span(ask))).collect::<Vec<_>>();
    let algorithms: Vec<i16> = asks.iter().map(|ask| ask.fingerprint.algorithm().into()).collect();
    let principals: Vec<Option<&[u8]>> = asks
        .iter()
        .map(|ask| ask.key.scope.principal_hash().map(|principal| principal.as_bytes().as_slice()))
        .collect();
    let rows = client
        .ask(
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
    rows.iter().filter_map(|row| met(row).transpose()).collect()
}

/// What a claim met; `None` when even the id is not one of ours.
fn met<R: Fields>(row: &R) -> Result<Option<(RecordId, Met)>, R::Error> {
    match row.field::<Option<&[u8]>>("made")? {
        Some(made) => Ok(made.try_into().ok().map(|id| (RecordId::from_bytes(id), Met::Nothing))),
        None => Ok(row::read(row)?.map(|(id, found)| (id, Met::Record(found.into())))),
    }
}

/// The records that are there.
pub(crate) async fn look<C: Connection>(
    client: &C,
    sql: &Sql,
    ids: &[RecordId],
) -> Result<HashMap<RecordId, Found>, C::Error> {
    let ids: Vec<&[u8]> = ids.iter().map(|id| id.as_bytes().as_slice()).collect();
    let rows = client.ask(&sql.look, &[(&ids, Type::BYTEA_ARRAY)]).await?;
    rows.iter().filter_map(|row| row::read(row).transpose()).collect()
}

/// Puts `next` in the place of the row that was seen; false when that has changed.
pub(crate) async fn replace<C: Connection>(
    client: &C,
    sql: &Sql,
    seen: &Seen,
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
        .ask(
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

/// Removes the row that was seen; false when it has changed.
pub(crate) async fn remove<C: Connection>(
    client: &C,
    sql: &Sql,
    id: &RecordId,
    seen: &Seen,
    row_wait: Duration,
) -> Result<bool, C::Error> {
    let rows = client
        .ask(
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

/// The id in a row; `None` when it is not one of ours.
pub(crate) fn id_of<R: Fields>(row: &R) -> Result<Option<RecordId>, R::Error> {
    Ok(row.field::<&[u8]>("id")?.try_into().ok().map(RecordId::from_bytes))
}

/// How long a statement waits for a row, as the setting is written. Zero would be for ever.
pub(crate) fn wait_ms(row_wait: Duration) -> String {
    row_wait.as_millis().max(1).to_string()
}
