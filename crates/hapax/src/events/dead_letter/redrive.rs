//! Redriving: a dead letter is published to its broker again, and its record gives it up only when it has come back.
//!
//! The published event names the record and its nonce. A consumer that meets the very dead letter that is named removes
//! it, conditionally on that nonce, and claims the key anew. So the event is held by the broker before the record lets go
//! of it, and redriving twice is harmless.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use hapax_core::{Nonce, RecordId, Store, StoreError};

use super::meta::bytes_of_hex;
use super::{DeadLetter, DeadReason, Filter, list};
use crate::events::event::Event;
use crate::events::key::{EventKey, KeyOrigin, Unnamed};
use crate::events::publish::{Outgoing, Publish, PublishError, PublishErrorKind};

/// The header of a redriven event: the nonce of its dead letter, as 32 hexadecimal digits.
pub const REDRIVE_HEADER: &str = "hapax-redrive";

/// The header of a redriven event: the id of the record of its dead letter.
pub const REDRIVE_RECORD_HEADER: &str = "hapax-redrive-record";

/// How many events are published at a time if no rate is set.
const BATCH: usize = 100;

/// Publishes dead letters again.
///
/// Nothing is removed by it. The consumer removes a dead letter when its event has come back.
#[must_use = "nothing happens until `run` is called and awaited"]
pub struct Redrive<'a, P> {
    store: &'a dyn Store,
    publisher: &'a P,
    filter: Filter,
    destination: Option<Arc<str>>,
    per_second_max: Option<NonZeroU32>,
    is_dry_run: bool,
}

/// What a redrive has done.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Redriven {
    /// The dead letters that matched, in the order in which they were found. In a dry run nothing else is set.
    pub matched: Vec<RecordId>,
    /// How many of them the broker has confirmed.
    pub published: u64,
    /// Those that the broker refused or has not confirmed. They stay dead letters. An event that is not confirmed may have
    /// been published, which is harmless.
    pub failed: Vec<(RecordId, PublishErrorKind)>,
    /// Those whose record names no destination. Set one with [`Redrive::destination`].
    pub without_destination: Vec<RecordId>,
    /// Records that cannot be read; see [`Listed::unreadable`](super::Listed::unreadable).
    pub unreadable: Vec<RecordId>,
    /// Why it ended early: the broker could not be reached. The dead letters that come after are not in this report.
    pub stopped: Option<PublishError>,
}

impl<'a, P: Publish> Redrive<'a, P> {
    /// A redrive of all dead letters.
    pub fn new(store: &'a dyn Store, publisher: &'a P) -> Self {
        let filter = Filter::default();
        Self { store, publisher, filter, destination: None, per_second_max: None, is_dry_run: false }
    }

    /// Only these.
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filter = filter;
        self
    }

    /// Publishes to this destination and not to those from which the events came.
    pub fn destination(mut self, destination: impl Into<Arc<str>>) -> Self {
        self.destination = Some(destination.into());
        self
    }

    /// Publishes at most so many in a second, one at a time. Default: as fast as the broker confirms.
    pub fn per_second_max(mut self, per_second_max: NonZeroU32) -> Self {
        self.per_second_max = Some(per_second_max);
        self
    }

    /// Only reports which dead letters match.
    pub fn dry_run(mut self) -> Self {
        self.is_dry_run = true;
        self
    }

    /// Reads all matching dead letters and publishes them, the oldest of each page first.
    ///
    /// # Errors
    /// When the store cannot answer. What was published until then is published.
    pub async fn run(self) -> Result<Redriven, StoreError> {
        let mut report = Redriven::default();
        let mut cursor = None;
        loop {
            let page = list(self.store, &self.filter, cursor.take()).await?;
            report.unreadable.extend(&page.unreadable);
            report.matched.extend(page.dead_letters.iter().map(|letter| letter.id));
            if !self.is_dry_run {
                self.publish_page(&page.dead_letters, &mut report).await;
            }
            cursor = page.next;
            if cursor.is_none() || report.stopped.is_some() {
                return Ok(report);
            }
        }
    }

    async fn publish_page(&self, letters: &[DeadLetter], report: &mut Redriven) {
        let mut due = Vec::new();
        for letter in letters.iter().rev() {
            match self.destination.clone().or_else(|| letter.destination.as_deref().map(Arc::from)) {
                Some(destination) => {
                    due.push((letter.id, Outgoing::new(destination, redriven_event(letter))))
                }
                None => report.without_destination.push(letter.id),
            }
        }
        let (batch, pause) = match self.per_second_max {
            None => (BATCH, None),
            Some(per_second) => (1, Some(Duration::from_secs(1) / per_second.get())),
        };
        for due in due.chunks(batch) {
            let (ids, outgoing): (Vec<RecordId>, Vec<Outgoing>) = due.iter().cloned().unzip();
            let answers = self.publisher.publish(&outgoing).await;
            for (id, answer) in ids.into_iter().zip(answers) {
                match answer {
                    Ok(()) => report.published += 1,
                    Err(error) => {
                        report.failed.push((id, error.kind()));
                        if error.kind() != PublishErrorKind::Refused {
                            report.stopped = Some(error);
                        }
                    }
                }
            }
            if report.stopped.is_some() {
                return;
            }
            if let Some(pause) = pause {
                tokio::time::sleep(pause).await;
            }
        }
    }
}

/// The event of a dead letter as it is published again: with the same key as before, and naming the dead letter.
pub(super) fn redriven_event(letter: &DeadLetter) -> Event {
    let mut event = letter.event.clone();
    // In a stream it gets another position, and must stay the same event.
    if letter.reason != DeadReason::Unnamed.name()
        && let Ok(EventKey { key, origin, .. }) = EventKey::of(&event, Unnamed::ByContent)
        && matches!(origin, KeyOrigin::Position | KeyOrigin::Content)
    {
        event = event.key(key.as_str());
    }
    let nonce: String = letter.nonce.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    event
        .without_header(REDRIVE_HEADER)
        .without_header(REDRIVE_RECORD_HEADER)
        .header(REDRIVE_HEADER, nonce)
        .header(REDRIVE_RECORD_HEADER, letter.id.to_string())
}

/// The dead letter that a redriven event names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::events) struct RedriveHeader {
    pub(in crate::events) nonce: Nonce,
    /// The record of the event's own key if none is named.
    pub(in crate::events) record: Option<RecordId>,
}

impl RedriveHeader {
    /// What the headers of an event name. A header that cannot be read names nothing.
    pub(in crate::events) fn of(event: &Event) -> Option<Self> {
        let nonce = bytes_of_hex(event.headers.text(REDRIVE_HEADER)?)?;
        let nonce = Nonce::from_bytes(nonce.try_into().ok()?);
        let record = event.headers.text(REDRIVE_RECORD_HEADER).and_then(RecordId::parse);
        Some(Self { nonce, record })
    }
}
