//! What AWS Lambda invokes a function with: batches of SQS and SNS, and events of EventBridge.
//!
//! The types implement serde's traits, for `lambda_runtime` or any other runtime, and convert into an [`Event`](super::Event):
//!
//! | from | kind | key | order |
//! |---|---|---|---|
//! | [`EventBridge`] | `detail-type` | `source` and `id` | |
//! | [`SqsMessage`] | the message attribute `type`, else empty | FIFO: queue, group and deduplication id, else `messageId` | `MessageGroupId` |
//! | [`SnsMessage`] | the message attribute `type`, else empty | `MessageId` | |
//!
//! A body that is a CloudEvent in JSON, an event of EventBridge or a notification of SNS is unwrapped: the event inside has
//! its own kind and its own key. Without an id of its own, a notification is named by the `MessageId` of SNS, which the
//! message has in every queue of the topic.
//!
//! ```
//! use hapax::events::lambda::{SqsBatch, SqsBatchResponse};
//! use hapax::events::Event;
//!
//! let batch: SqsBatch = serde_json::from_str(r#"{ "Records": [{
//!     "messageId": "059f36b4-87a3-44ab-83d2-661975830a7d", "receiptHandle": "AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a",
//!     "body": "{\"order\":\"order-123\"}", "attributes": { "ApproximateReceiveCount": "1" },
//!     "messageAttributes": { "type": { "stringValue": "order.paid", "dataType": "String" } },
//!     "md5OfBody": "e4e68fb7bd0e697a0ae8f1bb342846b3", "eventSource": "aws:sqs",
//!     "eventSourceARN": "arn:aws:sqs:eu-central-1:123456789012:orders", "awsRegion": "eu-central-1"
//! }] }"#)?;
//! let event = Event::from(&batch.records[0]);
//! assert_eq!(event.kind, "order.paid");
//! assert_eq!(event.id.as_deref(), Some("059f36b4-87a3-44ab-83d2-661975830a7d"));
//!
//! // The ids of messages that Lambda is to deliver again.
//! let response = SqsBatchResponse::failed([&batch.records[0].message_id]);
//! assert_eq!(
//!     serde_json::to_string(&response)?,
//!     r#"{"batchItemFailures":[{"itemIdentifier":"059f36b4-87a3-44ab-83d2-661975830a7d"}]}"#
//! );
//! # Ok::<(), serde_json::Error>(())
//! ```

mod sns;
mod sqs;

use bytes::Bytes;
use serde::de::{Deserialize, Deserializer, Error as _};
use serde_json::value::RawValue;

pub use self::sns::{SnsBatch, SnsMessage};
pub use self::sqs::{SqsAttribute, SqsBatch, SqsBatchResponse, SqsFailure, SqsMessage};
use super::envelope::{EnvelopeError, Members};
use super::event::Event;
use super::headers::Headers;
use super::{cloud_events, event_bridge};

/// An event of EventBridge; see [`event_bridge`]. Reading another one is an error that names what is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventBridge(Event);

impl From<EventBridge> for Event {
    fn from(envelope: EventBridge) -> Self {
        envelope.0
    }
}

impl<'de> Deserialize<'de> for EventBridge {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        let json = Box::<RawValue>::deserialize(json)?;
        event_bridge::read(json.get().as_bytes()).map(Self).map_err(D::Error::custom)
    }
}

/// The event of a message, and the id that SNS gave it if it came by a topic.
struct Unwrapped {
    event: Event,
    notification_id: Option<String>,
}

impl Unwrapped {
    /// The event inside of `text` if it is an envelope, otherwise an event with the text as its data, in both cases with
    /// these headers.
    fn of(headers: Headers, text: &str) -> Self {
        let inside = match Envelope::of(text) {
            None => return Self { event: plain(headers, text), notification_id: None },
            Some(Envelope::CloudEvent) => cloud_events::read_json(text.as_bytes()),
            Some(Envelope::EventBridge) => event_bridge::read(text.as_bytes()),
            Some(Envelope::Notification) => match serde_json::from_str::<SnsMessage>(text) {
                Ok(message) => {
                    let inside = message.unwrapped(headers);
                    return Self { notification_id: Some(message.message_id), ..inside };
                }
                Err(error) => Err(EnvelopeError::json(&error)),
            },
        };
        let event = match inside {
            Ok(event) => {
                let own = event.headers.clone();
                event.headers(own.iter().chain(headers.iter()).map(owned).collect())
            }
            Err(error) => plain(headers, text).unreadable(&error),
        };
        Self { event, notification_id: None }
    }
}

/// The format of an envelope, by the names of its members.
enum Envelope {
    CloudEvent,
    EventBridge,
    Notification,
}

impl Envelope {
    /// `None` if the text is data.
    fn of(text: &str) -> Option<Self> {
        if !text.trim_start().starts_with('{') {
            return None;
        }
        let members = Members::read(text.as_bytes()).ok()?;
        let has = |names: &[&str]| names.iter().all(|name| members.get(name).is_some());
        if has(&["specversion"]) && (has(&["id"]) || has(&["source"]) || has(&["type"])) {
            Some(Self::CloudEvent)
        } else if has(&["version", "id", "detail-type", "source", "detail"]) {
            Some(Self::EventBridge)
        } else if has(&["Type", "MessageId", "TopicArn", "Message"]) {
            Some(Self::Notification)
        } else {
            None
        }
    }
}

/// The header with the type of an event that has no envelope.
const TYPE: &str = "type";

fn plain(headers: Headers, text: &str) -> Event {
    let kind = headers.text(TYPE).unwrap_or_default().to_owned();
    Event::new(kind).headers(headers).data(text.to_owned())
}

fn owned((name, value): (&str, &[u8])) -> (String, Bytes) {
    (name.to_owned(), Bytes::copy_from_slice(value))
}
