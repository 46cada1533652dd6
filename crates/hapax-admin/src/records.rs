//! Queries and changes of records, shared by the command line, the admin API and the console.
//!
//! A change names the version of the record that the operator has seen. If the record has another version by then, the
//! change is refused.

#[cfg(test)]
pub(crate) mod fixture;
pub mod name;
pub mod response;
pub mod settlement;
pub mod timeline;

use std::sync::Arc;

use hapax::{Hapax, Keeper};
use hapax_core::{
    Deleted, Lookup, Query, Record, RecordId, Settled, State, Stats, Store, Timestamp, Verdict,
};

use crate::failure::{Code, Failure};
use crate::view::{Document, PageView, Payload, version};

/// The most records that are in memory with their payloads.
const STEP_RECORDS: usize = 50;

/// The records of a store.
#[derive(Clone, Debug)]
pub struct Records {
    hapax: Hapax,
    /// The name of the store in messages.
    place: Arc<str>,
}

/// A record with the time of the store's clock.
#[derive(Debug)]
struct Found {
    record: Box<Record>,
    now: Timestamp,
}

impl Records {
    /// The records of a process that runs operations: the process sees its changes immediately.
    pub fn in_process(hapax: Hapax) -> Self {
        Self { hapax, place: Arc::from("the store") }
    }

    /// The records of a store that no operations run on here. Must be called within a runtime.
    pub fn standalone(store: Arc<dyn Store>, place: &str) -> Self {
        let hapax = Hapax::builder(store).sweep(None).keeper(Keeper::SharedRuntime).build();
        Self { hapax, place: Arc::from(place) }
    }

    /// One page of a listing. It is read in small steps, because a store returns payloads, which the page omits.
    pub async fn page(&self, query: &Query) -> Result<PageView, Failure> {
        let mut step = Query { limit: query.limit.min(STEP_RECORDS), ..query.clone() };
        let mut page = self.step(&step).await?;
        loop {
            let left = query.limit.saturating_sub(page.records.len() + page.unreadable.len());
            if left == 0 || page.next.is_none() {
                return Ok(page);
            }
            step.limit = left.min(STEP_RECORDS);
            step.cursor = page.next.take();
            page.append(self.step(&step).await?);
        }
    }

    async fn step(&self, query: &Query) -> Result<PageView, Failure> {
        let page = self.hapax.store().list(query).await;
        page.map(PageView::from).map_err(|error| Failure::store(error, format!("cannot list {}", self.place)))
    }

    /// One record.
    pub async fn show(&self, id: &RecordId, payload: Payload) -> Result<Document, Failure> {
        let found = self.find(id).await?;
        Ok(Document::new(&found.record, found.now, payload))
    }

    /// The number of records by state.
    pub async fn stats(&self) -> Result<Stats, Failure> {
        let stats = self.hapax.store().stats().await;
        stats.map_err(|error| Failure::store(error, format!("cannot count the records of {}", self.place)))
    }

    /// Settles an uncertain record, if it has this version.
    pub async fn settle(&self, id: &RecordId, version_seen: &str, verdict: Verdict) -> Result<(), Failure> {
        let found = self.find(id).await?;
        refuse_unless_same(&found, version_seen)?;
        refuse_unless_uncertain(found.record.state_at(found.now))?;
        let settled = self.hapax.settle(&found.record, verdict).await;
        let what = match settled.map_err(|error| Failure::store(error, "cannot settle the record"))? {
            Settled::Applied => return Ok(()),
            Settled::NotUncertain(state) => {
                format!("the record has become {state} meanwhile; nothing was changed")
            }
            Settled::Changed => {
                "another attempt has taken over the record meanwhile; nothing was changed".to_owned()
            }
            Settled::Absent => "the record has been removed meanwhile; nothing was changed".to_owned(),
        };
        Err(changed(what))
    }

    /// Deletes a record, if it has this version.
    pub async fn delete(&self, id: &RecordId, version_seen: &str) -> Result<(), Failure> {
        let found = self.find(id).await?;
        refuse_unless_same(&found, version_seen)?;
        refuse_while_in_progress(found.record.state_at(found.now))?;
        let deleted = self.hapax.delete(&found.record).await;
        match deleted.map_err(|error| Failure::store(error, "cannot delete the record"))? {
            Deleted::Applied => Ok(()),
            Deleted::InProgress => Err(in_progress("it cannot be deleted")),
            Deleted::Changed => {
                Err(changed("another attempt has taken over the record meanwhile; nothing was deleted"))
            }
            Deleted::Absent => Err(changed("the record has been removed meanwhile; nothing was deleted")),
        }
    }

    async fn find(&self, id: &RecordId) -> Result<Found, Failure> {
        let looked_up = self.hapax.store().get(id).await;
        match looked_up.map_err(|error| Failure::store(error, format!("cannot read {}", self.place)))? {
            Lookup::Found { record, now } => Ok(Found { record, now }),
            Lookup::Absent => Err(missing(&self.place)),
            Lookup::Unreadable { why } => Err(unreadable(&id.to_string()).because(why)),
        }
    }
}

fn refuse_unless_same(found: &Found, version_seen: &str) -> Result<(), Failure> {
    if version(&found.record) == version_seen {
        return Ok(());
    }
    Err(changed("the record has changed since it was shown; nothing was changed"))
}

/// Only an uncertain record can be settled.
pub fn refuse_unless_uncertain(state: State) -> Result<(), Failure> {
    match state {
        State::Uncertain => Ok(()),
        State::InProgress => Err(in_progress("it cannot be settled yet")),
        State::Completed | State::Failed => {
            Err(Failure::new(Code::NotUncertain, format!("the record is {state}, not uncertain")).hint(
                "retries receive its stored result; `records delete` would let the operation run again",
            ))
        }
        State::Released => Err(Failure::new(Code::NotUncertain, "the key is already released")),
    }
}

/// A record in progress cannot be deleted: its owner would keep running while the key is free.
pub fn refuse_while_in_progress(state: State) -> Result<(), Failure> {
    if state == State::InProgress { Err(in_progress("it cannot be deleted")) } else { Ok(()) }
}

fn in_progress(consequence: &str) -> Failure {
    Failure::new(Code::InProgress, format!("the record is in progress: {consequence}"))
        .hint("wait until it has finished or its lease has lapsed")
}

fn changed(what: impl Into<String>) -> Failure {
    Failure::new(Code::RecordChanged, what).hint("check it again before the change")
}

/// The record does not exist in `place`.
pub fn missing(place: &str) -> Failure {
    Failure::new(Code::RecordMissing, format!("{place} has no such record")).hint(
        "a record is removed when its retention is over; \
         check the scope and the store, or search with `hapax records list`",
    )
}

/// The record exists and cannot be decoded.
pub fn unreadable(id: &str) -> Failure {
    Failure::new(Code::RecordUnreadable, format!("the record {id} exists and cannot be decoded"))
        .hint("retries are refused as for an uncertain record; see docs/errors/record-unreadable.md")
}

#[cfg(test)]
mod tests;
