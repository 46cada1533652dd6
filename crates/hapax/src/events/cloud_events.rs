//! [CloudEvents](https://cloudevents.io) 1.0: events in the headers of a message, in JSON and in batches of JSON.
//!
//! | attribute | in an [`Event`] |
//! |---|---|
//! | `id`, `source`, `type`, `subject`, `time` | `id`, `source`, `kind`, `subject`, `time` |
//! | `datacontenttype` and the data | `content_type`, `data` |
//! | `partitionkey` | `order` |
//! | `idempotencykey` | `key` |
//! | any other one, such as `traceparent` | the header `ce-traceparent`, as text |
//!
//! A message that is a CloudEvent is read as one or refused (V-13). Reading is strict: `id`, `source` and `type` are
//! required, and every other version of the specification is refused.
//!
//! ```
//! use hapax::events::{Event, cloud_events};
//!
//! let json = br#"{
//!     "specversion": "1.0", "type": "order.paid", "source": "/shop", "id": "42",
//!     "traceparent": "00-1", "data": { "amount": 12.50 }
//! }"#;
//! let event = cloud_events::read_json(json)?;
//! assert_eq!(event.kind, "order.paid");
//! assert_eq!(event.headers.text("ce-traceparent"), Some("00-1"));
//! assert_eq!(&event.data[..], br#"{ "amount": 12.50 }"#);
//!
//! let error = cloud_events::read_json(br#"{ "specversion": "1.0", "type": "order.paid", "id": "42" }"#).unwrap_err();
//! assert_eq!(error.to_string(), "`source` is missing");
//! # Ok::<(), hapax::events::EnvelopeError>(())
//! ```

mod attributes;
mod binary;
mod json;

use bytes::Bytes;

pub use self::json::{read_batch, read_json, write_batch, write_json};
use super::envelope::EnvelopeError;
use super::event::Event;
use super::headers::Headers;
use super::media_type::essence;

/// The media type of one event in JSON.
pub const JSON: &str = "application/cloudevents+json";
/// The media type of a batch of events in JSON.
pub const JSON_BATCH: &str = "application/cloudevents-batch+json";

/// The only supported version of the specification.
const VERSION: &str = "1.0";
/// The prefix of the header in an [`Event`] that holds an extension attribute, whatever its name in the message.
const PREFIX: &str = "ce-";
/// The name of the header with the content type of a message.
const CONTENT_TYPE: &str = "content-type";

/// How a protocol carries the attributes of an event in the headers of a message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Binding {
    /// HTTP: `ce-id`, percent-encoded; the content type is the message's.
    Http,
    /// NATS: `ce-id`, percent-encoded; the content type is `ce-datacontenttype`.
    Nats,
    /// Kafka: `ce_id`; the content type is the header `content-type`.
    Kafka,
    /// AMQP: `cloudEvents_id` or `cloudEvents:id`; the content type is the message's property, to be passed as a header
    /// `content-type`.
    Amqp,
}

/// How a message carries an event.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Mode {
    Binary,
    Json,
    Batch,
    /// A format of CloudEvents that is not supported, such as Avro.
    Unsupported,
}

impl Mode {
    fn of(content_type: &str) -> Self {
        let essence = essence(content_type).to_ascii_lowercase();
        match &*essence {
            JSON => Self::Json,
            JSON_BATCH => Self::Batch,
            _ if essence.starts_with("application/cloudevents") => Self::Unsupported,
            _ => Self::Binary,
        }
    }
}

impl Binding {
    /// The event of a message; `None` if the message is not a CloudEvent.
    ///
    /// Headers that are not attributes remain headers of the event. The names of headers are compared without regard to
    /// case.
    ///
    /// # Errors
    /// [`EnvelopeError`] when the message is a CloudEvent and invalid, or a batch.
    pub fn read<'h>(
        self,
        headers: impl IntoIterator<Item = (&'h str, &'h [u8])>,
        data: impl Into<Bytes>,
    ) -> Result<Option<Event>, EnvelopeError> {
        binary::read(self, headers.into_iter().collect(), data.into())
    }

    /// The headers of a message that carries the event; its body is the event's data.
    ///
    /// The other headers of the event are among them, unchanged. The key, the order and the extension attributes are
    /// attributes, too; the position is not written.
    ///
    /// # Errors
    /// [`EnvelopeError`] when the event has no id or no source, or an attribute is invalid.
    pub fn write(self, event: &Event) -> Result<Headers, EnvelopeError> {
        binary::write(self, event)
    }

    /// The prefix that is written.
    fn prefix(self) -> &'static str {
        match self {
            Self::Http | Self::Nats => PREFIX,
            Self::Kafka => "ce_",
            Self::Amqp => "cloudEvents_",
        }
    }

    /// The attribute in a header of this name; `None` if it holds none.
    fn attribute(self, header: &str) -> Option<&str> {
        let without = |prefix: &str| {
            let (start, name) = header.split_at_checked(prefix.len())?;
            start.eq_ignore_ascii_case(prefix).then_some(name)
        };
        without(self.prefix()).or_else(|| (self == Self::Amqp).then(|| without("cloudEvents:")).flatten())
    }

    /// Whether values are percent-encoded.
    fn is_encoded(self) -> bool {
        matches!(self, Self::Http | Self::Nats)
    }
}

#[cfg(test)]
mod tests;
