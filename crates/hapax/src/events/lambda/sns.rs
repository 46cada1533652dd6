//! Notifications of Amazon SNS.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

use super::Unwrapped;
use crate::events::base64;
use crate::events::event::Event;
use crate::events::headers::Headers;

/// What SNS invokes a function with.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(from = "Records")]
pub struct SnsBatch {
    /// The messages: one, as SNS invokes functions today.
    pub messages: Vec<SnsMessage>,
}

/// A message of a topic.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
#[non_exhaustive]
pub struct SnsMessage {
    /// Unique for each published message, and the same for each of its deliveries.
    pub message_id: String,
    /// The topic.
    pub topic_arn: String,
    /// The subject line, if the producer gave one.
    #[serde(default)]
    pub subject: Option<String>,
    /// The content.
    pub message: String,
    /// When it was published.
    #[serde(default)]
    pub timestamp: Option<String>,
    #[serde(default)]
    message_attributes: BTreeMap<String, SnsAttribute>,
}

#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SnsAttribute {
    r#type: String,
    value: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Records {
    records: Vec<Record>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Record {
    sns: SnsMessage,
}

impl From<Records> for SnsBatch {
    fn from(batch: Records) -> Self {
        Self { messages: batch.records.into_iter().map(|record| record.sns).collect() }
    }
}

impl SnsMessage {
    /// The event, with further headers of the queue that it came through.
    pub(super) fn unwrapped(&self, headers: Headers) -> Unwrapped {
        let mut own = headers;
        own.append("aws-topic-arn".to_owned(), self.topic_arn.clone().into());
        if let Some(subject) = &self.subject {
            own.append("aws-subject".to_owned(), subject.clone().into());
        }
        for (name, attribute) in &self.message_attributes {
            let binary = (attribute.r#type == "Binary").then(|| base64::decode(&attribute.value)).flatten();
            own.append(name.clone(), binary.unwrap_or_else(|| attribute.value.clone().into_bytes()).into());
        }
        let mut unwrapped = Unwrapped::of(own, &self.message);
        if let (None, Some(time)) = (&unwrapped.event.time, &self.timestamp) {
            unwrapped.event = unwrapped.event.time(time);
        }
        unwrapped
    }
}

/// The event inside of the message if it is an envelope, otherwise one with the message as its data.
impl From<&SnsMessage> for Event {
    fn from(message: &SnsMessage) -> Self {
        let Unwrapped { event, notification_id } = message.unwrapped(Headers::default());
        match event.id {
            Some(_) => event,
            None => event.id(notification_id.as_ref().unwrap_or(&message.message_id)),
        }
    }
}

/// The topic and sizes: a message may hold secrets.
impl fmt::Debug for SnsMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SnsMessage")
            .field("message_id", &self.message_id)
            .field("topic_arn", &self.topic_arn)
            .field("message_bytes", &self.message.len())
            .finish_non_exhaustive()
    }
}
