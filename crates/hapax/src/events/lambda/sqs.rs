//! Batches of Amazon SQS, and the response that names the messages to be delivered again.

use std::collections::BTreeMap;
use std::fmt;

use hapax_core::Key;
use serde::{Deserialize, Serialize};

use super::Unwrapped;
use crate::events::base64;
use crate::events::event::Event;
use crate::events::headers::Headers;

/// The kind of key that is made of a deduplication id.
const DEDUPLICATION: &str = "hapax sqs deduplication 1";

/// What SQS invokes a function with.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct SqsBatch {
    /// The messages, at most 10,000. Those of one group are in the order of the queue.
    #[serde(rename = "Records")]
    pub records: Vec<SqsMessage>,
}

/// A message of a queue.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SqsMessage {
    /// The id that SQS gave it, the same in every delivery. A message that is moved to another queue gets another one.
    pub message_id: String,
    /// The content.
    pub body: String,
    /// What SQS states about the message.
    #[serde(default)]
    pub attributes: BTreeMap<String, String>,
    /// What the producer states about it.
    #[serde(default)]
    pub message_attributes: BTreeMap<String, SqsAttribute>,
    /// The queue.
    #[serde(rename = "eventSourceARN", default)]
    pub queue_arn: String,
}

/// A message attribute.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SqsAttribute {
    /// The value, if the attribute is a string or a number.
    #[serde(default)]
    pub string_value: Option<String>,
    /// The value in Base64, if the attribute is binary.
    #[serde(default)]
    pub binary_value: Option<String>,
}

/// The answer to a batch: the messages that are to be delivered again. The queue's event source mapping has to report
/// batch item failures (`ReportBatchItemFailures`); without it Lambda takes every answer for success.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SqsBatchResponse {
    /// The messages. None: Lambda deletes the whole batch.
    pub batch_item_failures: Vec<SqsFailure>,
}

/// A message that is to be delivered again.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct SqsFailure {
    /// Its [`message_id`](SqsMessage::message_id).
    pub item_identifier: String,
}

impl SqsBatchResponse {
    /// These messages are to be delivered again; Lambda deletes all others.
    pub fn failed(message_ids: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let failure = |id: _| SqsFailure { item_identifier: Into::into(id) };
        Self { batch_item_failures: message_ids.into_iter().map(failure).collect() }
    }
}

impl SqsMessage {
    /// Whether the queue has delivered it before.
    pub fn redelivered(&self) -> bool {
        let count =
            self.attributes.get("ApproximateReceiveCount").and_then(|count| count.parse::<u64>().ok());
        count.is_some_and(|count| count > 1)
    }

    /// The group within which a FIFO queue keeps the order; `None` for other queues, where a group has another meaning.
    pub fn order(&self) -> Option<&str> {
        let group = self.attributes.get("MessageGroupId").filter(|_| self.queue_arn.ends_with(".fifo"));
        group.map(String::as_str)
    }

    fn headers(&self) -> Headers {
        let mut headers = Headers::default();
        headers.append("aws-queue-arn".to_owned(), self.queue_arn.clone().into());
        for (name, attribute) in &self.message_attributes {
            let value = match (&attribute.string_value, &attribute.binary_value) {
                (Some(text), _) => text.clone().into_bytes(),
                (None, Some(text)) => base64::decode(text).unwrap_or_else(|| text.clone().into_bytes()),
                (None, None) => continue,
            };
            headers.append(name.clone(), value.into());
        }
        headers
    }
}

/// The event inside of the body if it is an envelope, otherwise one with the body as its data.
impl From<&SqsMessage> for Event {
    fn from(message: &SqsMessage) -> Self {
        let Unwrapped { event, notification_id } = Unwrapped::of(message.headers(), &message.body);
        let event = match message.order() {
            Some(group) => event.order(group),
            None => event,
        };
        if event.id.is_some() || event.key.is_some() {
            return event;
        }
        match message.attributes.get("MessageDeduplicationId") {
            // The queue may compare deduplication ids within each group, so both are parts of the key.
            Some(deduplication_id) => {
                let group = message.order().unwrap_or_default();
                let parts = [&message.queue_arn, group, deduplication_id];
                event.key(Key::of_parts(DEDUPLICATION, parts).as_str()).id(&message.message_id)
            }
            None => event.id(notification_id.as_ref().unwrap_or(&message.message_id)),
        }
    }
}

/// The queue and sizes: a message may hold secrets.
impl fmt::Debug for SqsMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqsMessage")
            .field("message_id", &self.message_id)
            .field("queue_arn", &self.queue_arn)
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// Sizes only.
impl fmt::Debug for SqsAttribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        f.debug_struct("SqsAttribute")
            .field("bytes", &(length(&self.string_value) + length(&self.binary_value)))
            .finish_non_exhaustive()
    }
}
