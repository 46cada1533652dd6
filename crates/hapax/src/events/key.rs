//! [`EventKey`]: the key of an event, and what made it (V-01).
//!
//! An event has at most one key, by the first of its identities. Two events with equal keys are one event for a consumer,
//! so the parts of a key are hashed with their lengths and never joined.

use std::fmt;

use hapax_core::{Fingerprint, Key};

use super::event::EventParts;
use super::media_type;

/// The kind of key that [`Key::of_parts`] makes of the identities of events. A change of it would make every event a new
/// one for every consumer.
const KIND: &str = "hapax event key 1";

/// The key of an event in the scope of its consumer.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct EventKey {
    /// The key.
    pub key: Key,
    /// What it is made of.
    pub origin: KeyOrigin,
}

/// What the key of an event is made of, in order of precedence.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum KeyOrigin {
    /// [`Event::key`](super::Event::key). It is used as it is if it may be a [`Key`], and is hashed otherwise.
    Given,
    /// The source and the id.
    SourceAndId,
    /// The id of a producer that names no source.
    Id,
    /// The position in a stream. It recognises what a broker delivers again, and not what a producer sent twice.
    Position,
    /// Type, subject and data: equal content is one event. Only with [`Unnamed::ByContent`].
    Content,
}

/// What a consumer does with an event that has neither a key nor an id nor a position.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Unnamed {
    /// Refuses it.
    #[default]
    Refuse,
    /// Makes its key of type, subject and data. Two events with equal content are one, for as long as the record of the
    /// first is kept: only for events whose content names them.
    ByContent,
}

/// An event has neither a key nor an id nor a position, so that copies of it cannot be recognised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UnnamedEvent;

impl EventKey {
    /// The key of an event (V-01). Empty texts count as absent.
    ///
    /// ```
    /// use hapax::events::{Event, EventKey, KeyOrigin, Unnamed};
    ///
    /// let event = Event::new("order.paid").source("/shop/orders").id("42").position("ORDERS", 7);
    /// assert_eq!(EventKey::of(&event, Unnamed::Refuse)?.origin, KeyOrigin::SourceAndId);
    /// assert!(EventKey::of(&Event::new("order.paid").data("{}"), Unnamed::Refuse).is_err());
    /// # Ok::<(), hapax::events::UnnamedEvent>(())
    /// ```
    ///
    /// # Errors
    /// [`UnnamedEvent`] when there is nothing to make a key of.
    pub fn of(event: &EventParts, unnamed: Unnamed) -> Result<Self, UnnamedEvent> {
        let position = event.position.as_ref().filter(|at| !at.stream.is_empty() && !at.at.is_empty());
        let derived = |origin: KeyOrigin, parts: &[&[u8]]| {
            let parts = std::iter::once(origin.name().as_bytes()).chain(parts.iter().copied());
            Self { key: Key::of_parts(KIND, parts), origin }
        };
        Ok(match (present(&event.key), present(&event.source), present(&event.id), position) {
            (Some(key), ..) => match Key::new(key) {
                Ok(key) => Self { key, origin: KeyOrigin::Given },
                Err(_) => derived(KeyOrigin::Given, &[key.as_bytes()]),
            },
            (None, Some(source), Some(id), _) => {
                derived(KeyOrigin::SourceAndId, &[source.as_bytes(), id.as_bytes()])
            }
            (None, None, Some(id), _) => derived(KeyOrigin::Id, &[id.as_bytes()]),
            (None, _, None, Some(position)) => {
                derived(KeyOrigin::Position, &[position.stream.as_bytes(), position.at.as_bytes()])
            }
            (None, _, None, None) => match unnamed {
                Unnamed::ByContent => derived(KeyOrigin::Content, &[event.fingerprint().digest()]),
                Unnamed::Refuse => return Err(UnnamedEvent),
            },
        })
    }
}

fn present(text: &Option<String>) -> Option<&str> {
    text.as_deref().filter(|text| !text.is_empty())
}

impl KeyOrigin {
    /// The name used in metrics and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::SourceAndId => "source_and_id",
            Self::Id => "id",
            Self::Position => "position",
            Self::Content => "content",
        }
    }
}

impl EventParts {
    /// What a copy of the event has to equal: type, subject and data (V-06). JSON is compared by its value, so a broker
    /// may write it anew; data without a content type is compared as JSON if it is JSON.
    pub fn fingerprint(&self) -> Fingerprint {
        let mut builder = Fingerprint::builder().part("type", self.kind.as_bytes());
        if let Some(subject) = &self.subject {
            builder = builder.part("subject", subject.as_bytes());
        }
        let is_json = self.content_type.as_deref().is_none_or(media_type::is_json);
        let builder =
            if is_json { builder.json("data", &self.data) } else { builder.part("data", &self.data) };
        builder.build()
    }
}

impl fmt::Display for UnnamedEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the event has neither a key nor an id nor a position, so copies of it cannot be recognised",
        )
    }
}

impl std::error::Error for UnnamedEvent {}

#[cfg(test)]
mod tests;
