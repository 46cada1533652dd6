//! [`Publish`]: what a broker's adapter implements so that events can be sent to it.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use super::event::Event;

/// Sends events to a broker.
pub trait Publish: Send + Sync + 'static {
    /// Sends the events in this order, and returns once the broker has confirmed or refused each of them: one answer for
    /// each, in the same order.
    ///
    /// *Dropped*: an event may have been sent or not. *Sent again*: with the same id, so that the broker or a consumer
    /// recognises it.
    fn publish(&self, batch: &[Outgoing]) -> impl Future<Output = Vec<Result<(), PublishError>>> + Send;
}

/// An event and where it is to go.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Outgoing {
    /// What the broker routes by: a subject, a topic, a queue, or an exchange with its routing key.
    pub destination: Arc<str>,
    /// The event.
    pub event: Event,
}

impl Outgoing {
    /// The event, to be sent to this destination.
    pub fn new(destination: impl Into<Arc<str>>, event: Event) -> Self {
        Self { destination: destination.into(), event }
    }
}

/// Why an event was not confirmed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum PublishErrorKind {
    /// Not published, and a retry does not help: the broker refused this event, such as one that is too large or has an
    /// unknown destination.
    Refused,
    /// Not published: the broker could not be reached, or accepts nothing now. Retry later.
    Unavailable,
    /// **Unknown**: the confirmation was lost, so the event may have been published. Retry with the same id.
    Unknown,
}

impl PublishErrorKind {
    /// The name used in metrics and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Unavailable => "unavailable",
            Self::Unknown => "unknown",
        }
    }
}

/// An event was not confirmed by the broker.
#[derive(Debug)]
pub struct PublishError {
    kind: PublishErrorKind,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl PublishError {
    /// An error of this kind.
    pub fn new(kind: PublishErrorKind) -> Self {
        Self { kind, source: None }
    }

    /// Attaches the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The kind of failure.
    pub fn kind(&self) -> PublishErrorKind {
        self.kind
    }
}

impl fmt::Display for PublishError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            PublishErrorKind::Refused => "the broker refused the event",
            PublishErrorKind::Unavailable => "the broker is unavailable",
            PublishErrorKind::Unknown => {
                "the broker's confirmation was lost, the event may have been published"
            }
        })
    }
}

impl Error for PublishError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|source| &**source as &(dyn Error + 'static))
    }
}
