//! [`Source`] and [`Delivery`]: what a broker's adapter implements so that a consumer can read from it.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::time::Duration;

use super::durable::Durable;
use super::event::Event;

/// Where deliveries come from: a subscription, a queue, a stream.
pub trait Source: Send {
    /// An event as this broker hands it over.
    type Delivery: Delivery;

    /// The next delivery; `None` once the source is closed.
    ///
    /// Connects again by itself: an error is logged and tried again, never returned. *Dropped*: no delivery is lost; one
    /// that was received is returned by the next call, or the broker delivers it again.
    fn next(&mut self) -> impl Future<Output = Option<Self::Delivery>> + Send;

    /// How long the broker may deliver an event again, if it is known. A consumer's retention should not be shorter.
    fn horizon(&self) -> Option<Duration> {
        None
    }
}

/// One event as a broker hands it over, until it is acknowledged or given back.
///
/// A delivery that is dropped is neither: the broker delivers the event again when its deadline or its connection ends.
pub trait Delivery: Send + 'static {
    /// The event.
    fn event(&self) -> &Event;

    /// What the broker routes by to bring the event here again: a subject, a topic, a queue. A dead letter keeps it, so
    /// that the event can be redriven.
    fn destination(&self) -> Option<&str> {
        None
    }

    /// Whether the broker has delivered the event before, as far as it tells.
    fn redelivered(&self) -> bool {
        false
    }

    /// How long after the delivery, or after the last [`extend`](Self::extend), the broker delivers the event to another
    /// consumer; `None` if it does not while the connection lasts. The consumer extends at a third of it.
    fn deadline(&self) -> Option<Duration> {
        None
    }

    /// Begins the [`deadline`](Self::deadline) again.
    ///
    /// # Errors
    /// [`DeliveryError`]; with [`DeliveryErrorKind::Expired`] another consumer may have the event by now.
    fn extend(&self) -> impl Future<Output = Result<(), DeliveryError>> + Send {
        async { Ok(()) }
    }

    /// Tells the broker that the event is done with. The proof is that its outcome is recorded (V-02).
    ///
    /// # Errors
    /// [`DeliveryError`]. It changes nothing: the event is delivered again, found to be recorded and acknowledged (V-12).
    fn ack(self, proof: Durable) -> impl Future<Output = Result<(), DeliveryError>> + Send;

    /// Gives the event back: the broker may deliver it again at once.
    ///
    /// # Errors
    /// [`DeliveryError`]. The event is delivered again later.
    fn nack(self) -> impl Future<Output = Result<(), DeliveryError>> + Send;
}

/// Why a broker was not told about a delivery.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum DeliveryErrorKind {
    /// The delivery is no longer this consumer's: its deadline passed, or its connection ended. It is delivered again.
    Expired,
    /// Not applied: the broker could not be reached, or refused.
    Unavailable,
    /// The broker's answer was lost: the call may have been applied.
    Unknown,
}

/// A broker was not told about a delivery: not that it is acknowledged, given back or extended.
#[derive(Debug)]
pub struct DeliveryError {
    kind: DeliveryErrorKind,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl DeliveryError {
    /// An error of this kind.
    pub fn new(kind: DeliveryErrorKind) -> Self {
        Self { kind, source: None }
    }

    /// Attaches the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The kind of failure.
    pub fn kind(&self) -> DeliveryErrorKind {
        self.kind
    }
}

impl fmt::Display for DeliveryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            DeliveryErrorKind::Expired => "the delivery is no longer this consumer's",
            DeliveryErrorKind::Unavailable => "the broker is unavailable",
            DeliveryErrorKind::Unknown => "the broker's answer was lost",
        })
    }
}

impl Error for DeliveryError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|source| &**source as &(dyn Error + 'static))
    }
}
