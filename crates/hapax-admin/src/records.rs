//! Looking at records and changing them: the same for the command line, the admin API and the console.
//!
//! [`Records`] reads and changes records. It does not depend on who asks, nor whether over HTTP or from a
//! terminal. What was looked at is named by its version, and a change of anything else is refused.

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

/// How many records are held at a time with their payloads.
const STEP_RECORDS: usize = 50;

/// A store's records, and the right to change them.
#[derive(Clone, Debug)]
pub struct Records {
    hapax: Hapax,
    /// What the store is called in messages.
    place: Arc<str>,
}

/// A record that was found, and the store's clock at that moment.
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

    /// One page of a listing. It is read in small steps: a store hands out payloads too, and a view has none.
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

    /// How many records there are.
    pub async fn stats(&self) -> Result<Stats, Failure> {
        let stats = self.hapax.store().stats().await;
        stats.map_err(|error| Failure::store(error, format!("cannot count the records of {}", self.place)))
    }

    /// Decides the uncertain record that was looked at.
    pub async fn settle(&self, id: &RecordId, looked_at: &str, verdict: Verdict) -> Result<(), Failure> {
        let found = self.find(id).await?;
        refuse_unless_same(&found, looked_at)?;
        refuse_unless_uncertain(found.record.state_at(found.now))?;
        let settled = self.hapax.settle(&found.record, verdict).await;
        let what = match settled.map_err(|error| Failure::store(error, "cannot settle the record"))? {
            Settled::Applied => return Ok(()),
            Settled::NotUncertain(state) => {
                format!("the record became {state} meanwhile, nothing was changed")
            }
            Settled::Changed => {
                "another attempt took the record over meanwhile, nothing was changed".to_owned()
            }
            Settled::Absent => "the record was removed meanwhile, nothing was changed".to_owned(),
        };
        Err(changed(what))
    }

    /// Removes the record that was looked at.
    pub async fn delete(&self, id: &RecordId, looked_at: &str) -> Result<(), Failure> {
        let found = self.find(id).await?;
        refuse_unless_same(&found, looked_at)?;
        refuse_while_in_progress(found.record.state_at(found.now))?;
        let deleted = self.hapax.delete(&found.record).await;
        match deleted.map_err(|error| Failure::store(error, "cannot delete the record"))? {
            Deleted::Applied => Ok(()),
            Deleted::InProgress => Err(in_progress("it cannot be deleted")),
            Deleted::Changed => {
                Err(changed("another attempt took the record over meanwhile, nothing was deleted"))
            }
            Deleted::Absent => Err(changed("the record was removed meanwhile, nothing was deleted")),
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

fn refuse_unless_same(found: &Found, looked_at: &str) -> Result<(), Failure> {
    if version(&found.record) == looked_at {
        return Ok(());
    }
    Err(changed("the record changed after it was looked at, nothing was changed"))
}

/// Only what is uncertain can be decided.
pub fn refuse_unless_uncertain(state: State) -> Result<(), Failure> {
    match state {
        State::Uncertain => Ok(()),
        State::InProgress => Err(in_progress("there is nothing to decide yet")),
        State::Completed | State::Failed => Err(Failure::new(
            Code::NotUncertain,
            format!("there is nothing to decide: the record is {state}"),
        )
        .hint("its stored result answers retries; `records delete` would let the operation run again")),
        State::Released => {
            Err(Failure::new(Code::NotUncertain, "there is nothing to decide: the key is released already"))
        }
    }
}

/// A claim at work is never deleted: its owner would run on while the key looks fresh.
pub fn refuse_while_in_progress(state: State) -> Result<(), Failure> {
    if state == State::InProgress { Err(in_progress("it cannot be deleted")) } else { Ok(()) }
}

fn in_progress(so: &str) -> Failure {
    Failure::new(Code::InProgress, format!("somebody is working on this record: {so}"))
        .hint("wait until it is done or its lease has lapsed")
}

fn changed(what: impl Into<String>) -> Failure {
    Failure::new(Code::RecordChanged, what).hint("look at it again before deciding")
}

/// There is no such record in `place`.
pub fn missing(place: &str) -> Failure {
    Failure::new(Code::RecordMissing, format!("{place} has no such record")).hint(
        "a record is removed when its retention is over; \
         check the scope and the store, or look with `hapax records list`",
    )
}

/// The record is there and cannot be read.
pub fn unreadable(id: &str) -> Failure {
    Failure::new(Code::RecordUnreadable, format!("the record {id} is there and cannot be read"))
        .hint("its key is answered like an uncertain one; see docs/errors/record-unreadable.md")
}

#[cfg(test)]
mod tests;
