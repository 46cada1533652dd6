//! [`Change`]: decides a change of a record and writes it, on condition that the record is unchanged.
//!
//! The decision is always [`hapax_core::transition`]'s. A process that can guess the current record (absent, or its own last
//! write) writes without reading; the write's condition detects a wrong guess and returns the current record.

use std::sync::Arc;

use hapax_core::transition::{self, Decision};
use hapax_core::{Nonce, Record, RecordId, State, StoreError, StoreErrorKind, Timestamp};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::client::{Call, CallError, Client};
use crate::error::{CallFailure, Effect, ServiceError};
use crate::item::{self, StoredRecord, Version};
use crate::transaction::Declined;
use crate::{chunks, conditions, sightings};

/// Every failed try means that another process succeeded.
const TRIES_MAX: usize = 64;

/// The record that a change starts from.
#[derive(Debug)]
pub(crate) enum Basis {
    /// A guess.
    Guess(Option<Box<StoredRecord>>),
    /// It must be read first.
    Unread,
}

/// A change of one record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change<'a> {
    pub(crate) client: &'a Arc<Client>,
    pub(crate) op: &'static str,
    pub(crate) id: &'a RecordId,
    pub(crate) deadline: Instant,
    /// Items written in the same transaction, in the service's format.
    pub(crate) beside: &'a [Value],
}

/// The result of one write.
enum WriteResult {
    Applied(Option<StoredRecord>),
    /// The record was another one, namely this.
    Refused(Option<StoredRecord>),
}

impl<'a> Change<'a> {
    pub(crate) fn new(client: &'a Arc<Client>, op: &'static str, id: &'a RecordId) -> Self {
        Self { client, op, id, deadline: client.deadline(), beside: &[] }
    }

    /// The last write of the attempt `nonce` by this process, as a guess.
    pub(crate) fn known(&self, nonce: Nonce) -> Basis {
        self.client.sightings.own(self.id, nonce).map_or(Basis::Unread, |stored| Basis::Guess(Some(stored)))
    }

    /// Decides and writes; returns the answer, and the record as it is stored afterwards.
    pub(crate) async fn make<A>(
        &self,
        basis: Basis,
        mut decide: impl FnMut(Option<&StoredRecord>, Timestamp) -> Decision<A>,
    ) -> Result<(A, Option<StoredRecord>), StoreError> {
        let (mut stored, mut is_fact) = match basis {
            Basis::Guess(stored) => (stored.map(|stored| *stored), false),
            Basis::Unread => (self.read(self.deadline).await?, true),
        };
        for _ in 0..TRIES_MAX {
            let now = self.client.time.now();
            let Decision { change, answer } = decide(stored.as_ref(), now);
            let written = match change {
                transition::Change::Keep if is_fact => return Ok((answer, stored)),
                transition::Change::Keep => WriteResult::Refused(self.read(self.deadline).await?),
                transition::Change::Put(record) => self.put(*record, stored.as_ref(), now).await?,
                transition::Change::Remove => self.remove(stored.as_ref()).await?,
            };
            match written {
                WriteResult::Applied(stored) => return Ok((answer, stored)),
                WriteResult::Refused(found) => (stored, is_fact) = (found, true),
            }
        }
        Err(CallFailure::Contended.error(self.op, Effect::Read))
    }

    async fn read(&self, deadline: Instant) -> Result<Option<StoredRecord>, StoreError> {
        let found = self.client.read(self.op, self.id, deadline).await?;
        found.map_err(|_| CallFailure::Unreadable.error(self.op, Effect::Read))
    }

    async fn put(
        &self,
        record: Record,
        before: Option<&StoredRecord>,
        now: Timestamp,
    ) -> Result<WriteResult, StoreError> {
        let (new, apart) = StoredRecord::new(record, Version::random(), now);
        let deadline = match &apart {
            Some(outcome) => {
                chunks::write(self.client, self.op, &new, outcome).await?;
                self.client.deadline()
            }
            None => self.deadline,
        };
        let mut write = json!({"TableName": self.client.options.table, "Item": new.item()});
        conditions::unchanged(&mut write, before);
        let written = if self.beside.is_empty() {
            self.write("PutItem", &write, before, deadline).await
        } else {
            let items: Vec<Value> =
                std::iter::once(json!({"Put": write})).chain(self.beside.iter().cloned()).collect();
            self.write("TransactWriteItems", &json!({"TransactItems": items}), before, deadline).await
        };
        match &written {
            Ok(WriteResult::Applied(_)) => {
                if new.record.state() == State::InProgress {
                    self.client.sightings.wrote(new.clone(), self.client.time.steady());
                } else {
                    self.client.sightings.forget(self.id);
                }
                if let Some(before) = before {
                    chunks::remove(self.client, before);
                }
                return Ok(WriteResult::Applied(Some(new)));
            }
            // If the write may have been applied, the record may refer to these parts.
            Err(error) if error.kind() == StoreErrorKind::Unknown => {}
            _ => chunks::remove(self.client, &new),
        }
        written
    }

    async fn remove(&self, before: Option<&StoredRecord>) -> Result<WriteResult, StoreError> {
        let mut write =
            json!({"TableName": self.client.options.table, "Key": item::key(&self.id.to_string())});
        conditions::unchanged(&mut write, before);
        let written = self.write("DeleteItem", &write, before, self.deadline).await?;
        if let (WriteResult::Applied(_), Some(before)) = (&written, before) {
            self.client.sightings.forget(self.id);
            chunks::remove(self.client, before);
        }
        Ok(written)
    }

    async fn write(
        &self,
        action: &str,
        body: &Value,
        before: Option<&StoredRecord>,
        deadline: Instant,
    ) -> Result<WriteResult, StoreError> {
        let call = Call { op: self.op, effect: Effect::Write, deadline, action };
        match self.client.try_call(call, body).await {
            Ok(_) => Ok(WriteResult::Applied(None)),
            Err(CallError::Service(answered)) if answered.is_failed_condition() => {
                self.refused(answered.body.get("Item"))
            }
            Err(CallError::Service(answered)) if answered.reasons().is_some() => {
                self.cancelled(answered, before, deadline).await
            }
            Err(failed) => Err(failed.error(call)),
        }
    }

    fn refused(&self, found: Option<&Value>) -> Result<WriteResult, StoreError> {
        let found = found.map(|item| StoredRecord::read(self.id, item)).transpose();
        found.map(WriteResult::Refused).map_err(|_| CallFailure::Unreadable.error(self.op, Effect::Read))
    }

    /// A transaction was cancelled, because of the record or because of the other items.
    async fn cancelled(
        &self,
        answered: ServiceError,
        before: Option<&StoredRecord>,
        deadline: Instant,
    ) -> Result<WriteResult, StoreError> {
        let failed = |reason: &Value| reason["Code"] == "ConditionalCheckFailed";
        let first = answered.reasons().and_then(|reasons| Some((reasons.iter().position(failed)?, reasons)));
        match first {
            Some((0, reasons)) => self.refused(reasons[0].get("Item")),
            Some((position, _)) => {
                // The record's own condition may not have been evaluated, and the other item may fail because an earlier try was
                // applied and its reply was lost.
                let found = self.read(deadline).await?;
                if found.as_ref().map(|stored| stored.version) != before.map(|stored| stored.version) {
                    return Ok(WriteResult::Refused(found));
                }
                Err(StoreError::new(StoreErrorKind::Invalid, self.op)
                    .with_source(Declined { item: position - 1 }))
            }
            None => Err(answered.error(self.op, Effect::Write)),
        }
    }
}

impl Client {
    /// The record with the lease that this process observes.
    pub(crate) fn observed_record(&self, stored: &StoredRecord, now: Timestamp) -> Record {
        if stored.record.state() != State::InProgress {
            return stored.record.clone();
        }
        let watched = self.sightings.observed_for(&stored.record.key.id, stored.version, self.time.steady());
        sightings::observed_record(stored, watched, now)
    }
}
