//! [`Event`]: one event, independent of the broker that delivers it.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;

use super::envelope::EnvelopeError;
use super::headers::Headers;
use super::key::{EventKey, Unnamed};

/// The header that says why the envelope of a message is invalid.
const UNREADABLE: &str = "hapax-unreadable";

/// The content type that [`Event::json`] sets.
const JSON: &str = "application/json";

/// One event: its data, and what is known about it. Cheap to clone.
///
/// Each property is set by a method and read as a field of the same name. `Debug` shows neither data nor ids.
///
/// ```
/// use hapax::events::Event;
///
/// let event = Event::new("order.paid")
///     .id("evt-7")
///     .source("/shop/orders")
///     .subject("order-123")
///     .header("traceparent", "00-4bf9-00f0-01")
///     .json(&serde_json::json!({ "amount": 12 }))?;
///
/// assert_eq!(event.kind, "order.paid");
/// assert_eq!(event.subject.as_deref(), Some("order-123"));
/// assert_eq!(event.headers.text("Traceparent"), Some("00-4bf9-00f0-01"));
/// assert_eq!(&event.data[..], br#"{"amount":12}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Event(Arc<EventParts>);

/// The properties of an [`Event`], read through it.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventParts {
    /// The type, such as `order.paid`: what a router chooses the handler by.
    pub kind: String,
    /// The key that the event is to have; see [`Event::key`].
    pub key: Option<String>,
    /// The producer's id of the event, unique within its [`source`](Self::source) if it has one.
    pub id: Option<String>,
    /// What the event comes from, such as a URI of the producing service.
    pub source: Option<String>,
    /// What the event is about, such as the id of an order.
    pub subject: Option<String>,
    /// When it occurred, as the producer wrote it: a time of RFC 3339 in CloudEvents.
    pub time: Option<String>,
    /// The media type of the data.
    pub content_type: Option<String>,
    /// Further properties.
    pub headers: Headers,
    /// Events with the same value are processed one after the other.
    pub order: Option<String>,
    /// Where the event is in the stream from which it was read.
    pub position: Option<Position>,
    /// The content.
    pub data: Bytes,
}

/// The position of an event in a stream.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Position {
    /// The identity of the stream: another one if a stream is deleted and created again under the same name.
    pub stream: String,
    /// The position within the stream, such as a sequence number or a partition with an offset.
    pub at: String,
}

impl Event {
    /// An event of this type, without data.
    #[must_use]
    pub fn new(kind: impl Into<String>) -> Self {
        Self(Arc::new(EventParts {
            kind: kind.into(),
            key: None,
            id: None,
            source: None,
            subject: None,
            time: None,
            content_type: None,
            headers: Headers::default(),
            order: None,
            position: None,
            data: Bytes::new(),
        }))
    }

    /// The key under which a consumer remembers the event, if it is neither [`id`](Self::id) with
    /// [`source`](Self::source) nor the [`position`](Self::position).
    #[must_use]
    pub fn key(self, key: impl Into<String>) -> Self {
        self.with(|parts| parts.key = Some(key.into()))
    }

    /// The producer's id of the event.
    #[must_use]
    pub fn id(self, id: impl Into<String>) -> Self {
        self.with(|parts| parts.id = Some(id.into()))
    }

    /// What the event comes from. Together with the [`id`](Self::id) it identifies the event.
    #[must_use]
    pub fn source(self, source: impl Into<String>) -> Self {
        self.with(|parts| parts.source = Some(source.into()))
    }

    /// What the event is about, such as the id of an order.
    #[must_use]
    pub fn subject(self, subject: impl Into<String>) -> Self {
        self.with(|parts| parts.subject = Some(subject.into()))
    }

    /// When it occurred, as a time of RFC 3339.
    #[must_use]
    pub fn time(self, time: impl Into<String>) -> Self {
        self.with(|parts| parts.time = Some(time.into()))
    }

    /// The media type of the data.
    #[must_use]
    pub fn content_type(self, content_type: impl Into<String>) -> Self {
        self.with(|parts| parts.content_type = Some(content_type.into()))
    }

    /// Adds a header. The value may be any bytes; a name may occur more than once.
    #[must_use]
    pub fn header(self, name: impl Into<String>, value: impl Into<Bytes>) -> Self {
        self.with(|parts| parts.headers.append(name.into(), value.into()))
    }

    /// Removes all headers with this name.
    #[must_use]
    pub fn without_header(self, name: &str) -> Self {
        self.with(|parts| parts.headers.remove(name))
    }

    /// Replaces all headers.
    #[must_use]
    pub fn headers(self, headers: Headers) -> Self {
        self.with(|parts| parts.headers = headers)
    }

    /// Events with the same value are processed one after the other.
    #[must_use]
    pub fn order(self, order: impl Into<String>) -> Self {
        self.with(|parts| parts.order = Some(order.into()))
    }

    /// Where the event is in a stream. The identity of the stream must change if the stream is deleted and created again,
    /// because its positions begin again then.
    #[must_use]
    pub fn position(self, stream: impl Into<String>, at: impl ToString) -> Self {
        let position = Position { stream: stream.into(), at: at.to_string() };
        self.with(|parts| parts.position = Some(position))
    }

    /// The content.
    #[must_use]
    pub fn data(self, data: impl Into<Bytes>) -> Self {
        self.with(|parts| parts.data = data.into())
    }

    /// A value as JSON, with the content type `application/json` if none is set.
    ///
    /// # Errors
    /// When the value cannot be written as JSON.
    pub fn json(self, value: &(impl Serialize + ?Sized)) -> Result<Self, serde_json::Error> {
        let json = serde_json::to_vec(value)?;
        Ok(self.with(|parts| {
            parts.content_type.get_or_insert_with(|| JSON.to_owned());
            parts.data = json.into();
        }))
    }

    /// Marks the event as a message whose envelope is invalid. No handler gets it: a [`Router`](super::Router) ends it as
    /// undecodable, with the error as the reason. The consumer can keep the message so, and show why.
    #[must_use]
    pub fn unreadable(self, error: &EnvelopeError) -> Self {
        self.without_header(UNREADABLE).header(UNREADABLE, error.to_string())
    }

    /// Why the envelope of the message is invalid, if it is.
    pub(super) fn why_unreadable(&self) -> Option<String> {
        self.headers.get(UNREADABLE).map(|why| String::from_utf8_lossy(why).into_owned())
    }

    /// The bytes of the data, the headers and all other properties.
    pub fn size(&self) -> usize {
        let texts =
            [&self.key, &self.id, &self.source, &self.subject, &self.time, &self.content_type, &self.order];
        let texts: usize = texts.into_iter().flatten().map(String::len).sum();
        let position = self.position.as_ref().map_or(0, |position| position.stream.len() + position.at.len());
        self.kind.len() + texts + position + self.headers.size() + self.data.len()
    }

    /// Changes this event and no clone of it.
    fn with(mut self, change: impl FnOnce(&mut EventParts)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }
}

impl Deref for Event {
    type Target = EventParts;

    fn deref(&self) -> &EventParts {
        &self.0
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

/// Names, sizes and the hash of the key: ids, subjects and data may identify a customer.
impl fmt::Debug for EventParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event")
            .field("kind", &self.kind)
            .field("key", &EventKey::of(self, Unnamed::Refuse).ok().map(|event| event.key))
            .field("headers", &self.headers)
            .field("data_bytes", &self.data.len())
            .finish_non_exhaustive()
    }
}

/// Shows the stream and not the position in it, which may serve as the event's key.
impl fmt::Debug for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Position").field("stream", &self.stream).finish_non_exhaustive()
    }
}
