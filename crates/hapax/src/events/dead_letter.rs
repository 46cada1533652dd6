//! Dead letters: events that a consumer does not process any more, kept as failed records that hold the event.
//!
//! [`list`] and [`show`] read them, [`discard`] removes one for good, [`Redrive`] publishes them to their broker again. All
//! take a store and need no consumer: they are for operators' tools, which often run in another process.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use hapax::events::dead_letter::{Filter, list};
//! use hapax::events::{Consumer, Event};
//! use hapax::{Fail, Hapax, MemoryStore};
//!
//! let hapax = Hapax::new(MemoryStore::new());
//! let billing = Consumer::new(&hapax, "billing");
//! let event = Event::new("order.paid").id("evt-7").data("{}");
//! let refused = billing.process(&event, |_cx| async { Err::<(), _>(Fail::permanent("no such order")) });
//! assert!(refused.await.is_err());
//!
//! let listed = list(&**hapax.store(), &Filter::default().consumer("billing"), None).await?;
//! let letter = &listed.dead_letters[0];
//! assert_eq!((&*letter.reason, &*letter.error, letter.event.id.as_deref()), ("permanent", "no such order", Some("evt-7")));
//! # Ok::<(), hapax::core::StoreError>(())
//! # }).unwrap();
//! ```

mod meta;
mod redrive;

use std::fmt;
use std::time::Duration;

use hapax_core::{
    Class, Deleted, Format, Lookup, Nonce, Query, Record, RecordId, Recorded, State, Store, StoreError,
    Timestamp,
};

pub(super) use self::redrive::RedriveHeader;
pub use self::redrive::{REDRIVE_HEADER, REDRIVE_RECORD_HEADER, Redrive, Redriven};
use super::event::Event;

/// The maximum length of an error's text in a dead letter. It is for people; the event is what must fit.
const ERROR_BYTES_MAX: usize = 4096;

/// Why an event is a dead letter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum DeadReason {
    /// Its handler failed in every try.
    Failed,
    /// Its handler says that no try can succeed.
    Permanent,
    /// Its data cannot be decoded.
    Undecodable,
    /// No handler is registered for its type.
    UnknownType,
    /// Its handler has run more often than it may, and no outcome was recorded.
    Lost,
    /// Its handler ended without an outcome too often in a row: the process died, or the handler panicked.
    Crashed,
    /// Its handler ended without an outcome, and the consumer runs none a second time.
    Uncertain,
    /// Its key was used for an event with other content.
    Reused,
    /// There is a record of its key that cannot be read.
    Unreadable,
    /// Its key is older than records are kept.
    Expired,
    /// It has neither a key nor an id nor a position.
    Unnamed,
}

impl DeadReason {
    /// Every reason.
    pub const ALL: [Self; 11] = [
        Self::Failed,
        Self::Permanent,
        Self::Undecodable,
        Self::UnknownType,
        Self::Lost,
        Self::Crashed,
        Self::Uncertain,
        Self::Reused,
        Self::Unreadable,
        Self::Expired,
        Self::Unnamed,
    ];

    /// The name used in records, metrics and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Permanent => "permanent",
            Self::Undecodable => "undecodable",
            Self::UnknownType => "unknown_type",
            Self::Lost => "lost",
            Self::Crashed => "crashed",
            Self::Uncertain => "uncertain",
            Self::Reused => "reused",
            Self::Unreadable => "unreadable",
            Self::Expired => "expired",
            Self::Unnamed => "unnamed",
        }
    }

    /// The reason with this [`name`](Self::name).
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.name() == name)
    }

    /// The reason as a sentence.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Failed => "the handler failed in every try",
            Self::Permanent => "the handler failed permanently",
            Self::Undecodable => "the data cannot be decoded",
            Self::UnknownType => "no handler is registered for the type",
            Self::Lost => "no outcome was recorded after more attempts than are allowed",
            Self::Crashed => "the handler ended without an outcome too often in a row",
            Self::Uncertain => "it is unknown whether the handler had its effect",
            Self::Reused => "the key was used for an event with other content",
            Self::Unreadable => "the record of the key cannot be read",
            Self::Expired => "the key is older than records are kept",
            Self::Unnamed => "the event has neither a key nor an id nor a position",
        }
    }
}

/// An event that its consumer does not process any more, as it is recorded.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct DeadLetter {
    /// Its record.
    pub id: RecordId,
    /// Identifies this dead letter among all that the record may have held; see [`discard`].
    pub nonce: Nonce,
    /// The namespace of the consumer; empty when there is none.
    pub namespace: String,
    /// The name of the consumer.
    pub consumer: String,
    /// The name of the [`DeadReason`], or another text that a later version has written.
    pub reason: String,
    /// The text of the error.
    pub error: String,
    /// The attempt that ended it; 0 if none ran.
    pub attempt: u32,
    /// What its broker routes by, if the delivery named it: where a redrive publishes it.
    pub destination: Option<String>,
    /// The event.
    pub event: Event,
    /// When the event was first claimed, on the store's clock.
    pub created_at: Timestamp,
    /// When it became a dead letter, on the store's clock.
    pub dead_since: Timestamp,
}

impl DeadLetter {
    /// The dead letter that a record holds.
    ///
    /// # Errors
    /// [`NoDeadLetter`]: the record holds none, or one that cannot be read.
    pub fn of(record: &Record) -> Result<Self, NoDeadLetter> {
        let Some(recorded) = record.recorded().filter(|recorded| is_dead_letter(recorded)) else {
            return Err(NoDeadLetter::Other);
        };
        if record.state() != State::Failed {
            return Err(NoDeadLetter::Other);
        }
        let meta = meta::read(recorded).ok_or(NoDeadLetter::Unreadable)?;
        let scope = &record.key.scope;
        Ok(Self {
            id: record.key.id,
            nonce: record.fence.nonce,
            namespace: scope.namespace().to_owned(),
            consumer: scope.operation().to_owned(),
            reason: meta.reason,
            error: meta.error,
            attempt: meta.attempt,
            destination: meta.destination,
            event: meta.event,
            created_at: record.created_at,
            dead_since: record.updated_at,
        })
    }
}

/// Why a record has no dead letter to show.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NoDeadLetter {
    /// There is no record.
    Absent,
    /// The record is not a dead letter.
    Other,
    /// The dead letter, or its record, cannot be read by this version.
    Unreadable,
}

impl fmt::Display for NoDeadLetter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Absent => "there is no record",
            Self::Other => "the record is not a dead letter",
            Self::Unreadable => "the dead letter cannot be read",
        })
    }
}

impl std::error::Error for NoDeadLetter {}

/// Which dead letters. The default is all of them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
#[must_use]
pub struct Filter {
    /// Only this namespace.
    pub namespace: Option<String>,
    /// Only this consumer.
    pub consumer: Option<String>,
    /// Only events of this type.
    pub kind: Option<String>,
    /// Only events of this subject.
    pub subject: Option<String>,
    /// Only for the reason of this name.
    pub reason: Option<String>,
    /// Only those that became dead letters at least this long ago.
    pub age_min: Option<Duration>,
    /// Only those that became dead letters at most this long ago.
    pub age_max: Option<Duration>,
}

impl Filter {
    /// Only this namespace.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Only this consumer.
    pub fn consumer(mut self, consumer: impl Into<String>) -> Self {
        self.consumer = Some(consumer.into());
        self
    }

    /// Only events of this type.
    pub fn kind(mut self, kind: impl Into<String>) -> Self {
        self.kind = Some(kind.into());
        self
    }

    /// Only events of this subject.
    pub fn subject(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self
    }

    /// Only for this reason.
    pub fn reason(mut self, reason: DeadReason) -> Self {
        self.reason = Some(reason.name().to_owned());
        self
    }

    /// Only those that became dead letters at least this long ago.
    pub fn age_min(mut self, age_min: Duration) -> Self {
        self.age_min = Some(age_min);
        self
    }

    /// Only those that became dead letters at most this long ago.
    pub fn age_max(mut self, age_max: Duration) -> Self {
        self.age_max = Some(age_max);
        self
    }

    /// The part of it that stores can answer.
    fn query(&self, cursor: Option<String>) -> Query {
        Query {
            states: vec![State::Failed],
            namespace: self.namespace.clone(),
            operation_prefix: self.consumer.clone(),
            age_min: self.age_min,
            age_max: self.age_max,
            cursor,
            ..Query::default()
        }
    }

    /// The rest.
    fn admits(&self, letter: &DeadLetter) -> bool {
        let is = |wanted: &Option<String>, text: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| text == Some(wanted))
        };
        is(&self.consumer, Some(&letter.consumer))
            && is(&self.kind, Some(&letter.event.kind))
            && is(&self.subject, letter.event.subject.as_deref())
            && is(&self.reason, Some(&letter.reason))
    }
}

/// A page of a listing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Listed {
    /// The dead letters, newest first. A page may have none although later ones do.
    pub dead_letters: Vec<DeadLetter>,
    /// Records in the range of this page that cannot be read, or hold a dead letter that cannot be read. They match every
    /// filter, so that none is overlooked.
    pub unreadable: Vec<RecordId>,
    /// The cursor of the next page; none when this is the last.
    pub next: Option<String>,
    /// The store's clock at the read.
    pub now: Timestamp,
}

/// One page of the dead letters, newest first. `cursor` is the [`next`](Listed::next) of the page before.
///
/// # Errors
/// When the store cannot answer.
pub async fn list(store: &dyn Store, filter: &Filter, cursor: Option<String>) -> Result<Listed, StoreError> {
    let page = store.list(&filter.query(cursor)).await?;
    let mut listed =
        Listed { unreadable: page.unreadable, next: page.next, now: page.now, ..Listed::default() };
    for record in &page.records {
        match DeadLetter::of(record) {
            Ok(letter) if filter.admits(&letter) => listed.dead_letters.push(letter),
            Err(NoDeadLetter::Unreadable) => listed.unreadable.push(record.key.id),
            Ok(_) | Err(_) => {}
        }
    }
    Ok(listed)
}

/// The dead letter of one record.
///
/// # Errors
/// When the store cannot answer.
pub async fn show(store: &dyn Store, id: &RecordId) -> Result<Result<DeadLetter, NoDeadLetter>, StoreError> {
    Ok(match store.get(id).await? {
        Lookup::Absent => Err(NoDeadLetter::Absent),
        Lookup::Unreadable { .. } => Err(NoDeadLetter::Unreadable),
        Lookup::Found { record, .. } => DeadLetter::of(&record),
    })
}

/// Removes a dead letter for good: the only copy of the event, unless its broker or an operator has another. Its key is
/// fresh afterwards. Nothing is removed if the record holds another attempt meanwhile.
///
/// # Errors
/// When the store cannot answer; the dead letter may be removed then.
pub async fn discard(store: &dyn Store, letter: &DeadLetter) -> Result<Deleted, StoreError> {
    store.delete(&letter.id, letter.nonce).await
}

/// The outcome that makes an event a dead letter.
pub(super) fn recorded(
    event: &Event,
    reason: DeadReason,
    error: &str,
    attempt: u32,
    destination: Option<&str>,
) -> Recorded {
    let error = if error.is_empty() { reason.words() } else { error };
    let error = cut(error, ERROR_BYTES_MAX);
    Recorded::new(Class::Error, Format::DEAD_LETTER, event.data.clone()).with_meta(meta::write(
        event,
        reason,
        error,
        attempt,
        destination,
    ))
}

/// The text up to the last character that ends within `bytes_max`.
fn cut(text: &str, bytes_max: usize) -> &str {
    let end = (0..=bytes_max.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or_default()]
}

pub(super) fn is_dead_letter(recorded: &Recorded) -> bool {
    recorded.format == Format::DEAD_LETTER && recorded.class == Class::Error
}

/// The reason and the error of a dead letter, if they can be read.
pub(super) fn error_of(recorded: &Recorded) -> Option<(String, String)> {
    let meta = meta::read(recorded)?;
    Some((meta.reason, meta.error))
}

#[cfg(test)]
mod tests;
