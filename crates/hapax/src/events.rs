//! Events of a message broker: what they are, where they come from and where they go.
//!
//! A [`Source`] returns one [`Delivery`] after another: an [`Event`] as a broker hands it over. A delivery is
//! acknowledged with a [`Durable`], which only a recorded outcome yields, so an event that is still to be processed
//! cannot be acknowledged by mistake. [`Publish`] is the way back to a broker.
//!
//! Adapters for brokers implement these traits in crates of their own.

mod base64;
pub mod cloud_events;
mod durable;
mod envelope;
mod event;
pub mod event_bridge;
mod from_event;
mod handler;
mod headers;
mod key;
pub mod lambda;
mod media_type;
mod publish;
mod router;
mod source;

pub use self::durable::Durable;
pub use self::envelope::EnvelopeError;
pub use self::event::{Event, EventParts, Position};
pub use self::from_event::{Data, FromEvent, Undecodable};
pub use self::handler::{Handler, HandlerOutcome, PermanentReason};
pub use self::headers::Headers;
pub use self::key::{EventKey, KeyOrigin, Unnamed, UnnamedEvent};
pub use self::publish::{Outgoing, Publish, PublishError, PublishErrorKind};
pub use self::router::Router;
pub use self::source::{Delivery, DeliveryError, DeliveryErrorKind, Source};
