//! [`Change`]: decides about a record and writes the decision, if the record is still the one that was decided about.
//!
//! The decision is always [`hapax_core::transition`]'s. A process that knows what is probably there (nothing, or what it
//! wrote itself) writes without reading; the condition of the write tells whether it was right, and what is there if not.

use std::sync::Arc;

use hapax_core::transition::{self, Decision};
use hapax_core::{Nonce, Record, RecordId, State, StoreError, StoreErrorKind, Timestamp};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::error::{Answered, Effect, Refusal};
use crate::item::{self, Held, Version};
use crate::link::{Call, Failed, Link};
use crate::transaction::Declined;
use crate::{chunks, conditions, seen};

/// Each try that fails means that somebody else got through.
const TRIES_MAX: usize = 64;

/// What a change starts from.
#[derive(Debug)]
pub(crate) enum Basis {
    /// This is probably there.
    Guess(Option<Box<Held>>),
    /// It must be read first.
    Nothing,
}

/// A change of one record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change<'a> {
    pub(crate) link: &'a Arc<Link>,
    pub(crate) op: &'static str,
    pub(crate) id: &'a RecordId,
    pub(crate) deadline: Instant,
    /// What is written in the same transaction, as the service wants it.
    pub(crate) beside: &'a [Value],
}

/// What became of one write.
enum Written {
    Done(Option<Held>),
    /// The record was another one, namely this.
    Refused(Option<Held>),
}

impl<'a> Change<'a> {
    pub(crate) fn new(link: &'a Arc<Link>, op: &'static str, id: &'a RecordId) -> Self {
        Self { link, op, id, deadline: link.deadline(), beside: &[] }
    }

    /// What this process knows of the attempt `nonce`.
    pub(crate) fn known(&self, nonce: Nonce) -> Basis {
        self.link.seen.own(self.id, nonce).map_or(Basis::Nothing, |held| Basis::Guess(Some(held)))
    }

    /// Decides and writes; the answer, and the record as it is stored then.
    pub(crate) async fn make<A>(
        &self,
        basis: Basis,
        mut decide: impl FnMut(Option<&Held>, Timestamp) -> Decision<A>,
    ) -> Result<(A, Option<Held>), StoreError> {
        let (mut held, mut is_fact) = match basis {
            Basis::Guess(held) => (held.map(|held| *held), false),
            Basis::Nothing => (self.read(self.deadline).await?, true),
        };
        for _ in 0..TRIES_MAX {
            let now = self.link.time.now();
            let Decision { change, answer } = decide(held.as_ref(), now);
            let written = match change {
                transition::Change::Keep if is_fact => return Ok((answer, held)),
                transition::Change::Keep => Written::Refused(self.read(self.deadline).await?),
                transition::Change::Put(record) => self.put(*record, held.as_ref(), now).await?,
                transition::Change::Remove => self.remove(held.as_ref()).await?,
            };
            match written {
                Written::Done(held) => return Ok((answer, held)),
                Written::Refused(found) => (held, is_fact) = (found, true),
            }
        }
        Err(Refusal::Contended.error(self.op, Effect::Read))
    }

    async fn read(&self, deadline: Instant) -> Result<Option<Held>, StoreError> {
        let found = self.link.read(self.op, self.id, deadline).await?;
        found.map_err(|_| Refusal::Unreadable.error(self.op, Effect::Read))
    }

    async fn put(
        &self,
        record: Record,
        before: Option<&Held>,
        now: Timestamp,
    ) -> Result<Written, StoreError> {
        let (new, apart) = Held::new(record, Version::random(), now);
        let deadline = match &apart {
            Some(outcome) => {
                chunks::write(self.link, self.op, &new, outcome).await?;
                self.link.deadline()
            }
            None => self.deadline,
        };
        let mut write = json!({"TableName": self.link.options.table, "Item": new.item()});
        conditions::unchanged(&mut write, before);
        let written = if self.beside.is_empty() {
            self.write("PutItem", &write, before, deadline).await
        } else {
            let items: Vec<Value> =
                std::iter::once(json!({"Put": write})).chain(self.beside.iter().cloned()).collect();
            self.write("TransactWriteItems", &json!({"TransactItems": items}), before, deadline).await
        };
        match &written {
            Ok(Written::Done(_)) => {
                if new.record.state() == State::InProgress {
                    self.link.seen.wrote(new.clone(), self.link.time.steady());
                } else {
                    self.link.seen.forget(self.id);
                }
                if let Some(before) = before {
                    chunks::remove(self.link, before);
                }
                return Ok(Written::Done(Some(new)));
            }
            // Where the write may have been applied, the record may tell of its parts.
            Err(error) if error.kind() == StoreErrorKind::Unknown => {}
            _ => chunks::remove(self.link, &new),
        }
        written
    }

    async fn remove(&self, before: Option<&Held>) -> Result<Written, StoreError> {
        let mut write = json!({"TableName": self.link.options.table, "Key": item::key(&self.id.to_string())});
        conditions::unchanged(&mut write, before);
        let written = self.write("DeleteItem", &write, before, self.deadline).await?;
        if let (Written::Done(_), Some(before)) = (&written, before) {
            self.link.seen.forget(self.id);
            chunks::remove(self.link, before);
        }
        Ok(written)
    }

    async fn write(
        &self,
        action: &str,
        body: &Value,
        before: Option<&Held>,
        deadline: Instant,
    ) -> Result<Written, StoreError> {
        let call = Call { op: self.op, effect: Effect::Write, deadline, action };
        match self.link.try_call(call, body).await {
            Ok(_) => Ok(Written::Done(None)),
            Err(Failed::Answered(answered)) if answered.is_condition() => {
                self.refused(answered.body.get("Item"))
            }
            Err(Failed::Answered(answered)) if answered.reasons().is_some() => {
                self.cancelled(answered, before, deadline).await
            }
            Err(failed) => Err(failed.error(call)),
        }
    }

    fn refused(&self, found: Option<&Value>) -> Result<Written, StoreError> {
        let found = found.map(|item| Held::read(self.id, item)).transpose();
        found.map(Written::Refused).map_err(|_| Refusal::Unreadable.error(self.op, Effect::Read))
    }

    /// A transaction was cancelled, because of the record or because of what is beside it.
    async fn cancelled(
        &self,
        answered: Answered,
        before: Option<&Held>,
        deadline: Instant,
    ) -> Result<Written, StoreError> {
        let failed = |reason: &Value| reason["Code"] == "ConditionalCheckFailed";
        let first = answered.reasons().and_then(|reasons| Some((reasons.iter().position(failed)?, reasons)));
        match first {
            Some((0, reasons)) => self.refused(reasons[0].get("Item")),
            Some((position, _)) => {
                // The record's own condition may not have been looked at, and what is beside it may fail because an
                // earlier try was applied whose answer was lost.
                let found = self.read(deadline).await?;
                if found.as_ref().map(|held| held.version) != before.map(|held| held.version) {
                    return Ok(Written::Refused(found));
                }
                Err(StoreError::new(StoreErrorKind::Invalid, self.op)
                    .with_source(Declined { item: position - 1 }))
            }
            None => Err(answered.error(self.op, Effect::Write)),
        }
    }
}

impl Link {
    /// The record as this process may judge it, from what it has seen of it.
    pub(crate) fn judged(&self, held: &Held, now: Timestamp) -> Record {
        if held.record.state() != State::InProgress {
            return held.record.clone();
        }
        let watched = self.seen.watched(&held.record.key.id, held.version, self.time.steady());
        seen::judged(held, watched, now)
    }
}
