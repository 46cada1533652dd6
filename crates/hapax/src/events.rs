//! Events of a message broker: what they are, where they come from, and how each is processed at least once and remembered.
//!
//! # The life of an event
//!
//! 1. A [`Source`] returns a [`Delivery`]: an [`Event`] as a broker hands it over. [`Consumer::run`] takes it when there is
//!    room in hand and, if it has an ordering key, puts it behind the events of the same order.
//! 2. Its [`EventKey`] is the key of an operation in the scope of the consumer; type, subject and data are the fingerprint.
//! 3. Once there is room to run, the key is claimed. A record that holds an outcome is the only proof of a duplicate; a key
//!    that is in progress elsewhere is waited for, with the delivery in hand.
//! 4. The [`Router`] chooses the [`Handler`] by the type. It runs under a lease, and its result is recorded: as completed,
//!    as released for the next attempt, or as a [dead letter](dead_letter), which holds the event.
//! 5. After a failure the delivery is held for a [back-off](BackOff), its broker's deadline extended, and claimed again.
//! 6. Only with an outcome in the store there is a [`Durable`], and only with a `Durable` the delivery can be acknowledged.
//!    A delivery that ends without one is given back.
//!
//! The broker delivers again what was not acknowledged: after a crash, after a lost acknowledgement, after a drain. It
//! enters at step 1, and step 3 finds out what is known about it.
//!
//! What follows from each answer of the engine is one table, in `decide.rs`; its rules are V-02 to V-12 of the protocol.
//! [`Consumer::process`] is one attempt without a broker, [`Consumer::batch`] a batch with an answer for each message.
//! [`Publish`] is the way back to a broker, for a [redrive](dead_letter::Redrive).
//!
//! Adapters for brokers implement [`Source`], [`Delivery`] and [`Publish`] in crates of their own.

mod attempt;
mod base64;
mod batch;
pub mod cloud_events;
mod consumer;
pub mod dead_letter;
mod decide;
mod durable;
mod envelope;
mod event;
pub mod event_bridge;
mod from_event;
mod handle;
mod handler;
mod headers;
mod hold;
mod key;
pub mod lambda;
mod media_type;
mod order;
mod publish;
mod router;
mod run;
mod source;

pub use self::batch::NotHandled;
pub use self::consumer::{Consumer, ConsumerHealth, DeadLetters};
pub use self::durable::Durable;
pub use self::envelope::EnvelopeError;
pub use self::event::{Event, EventParts, Position};
pub use self::from_event::{Data, FromEvent, Undecodable};
pub use self::handle::Handled;
pub use self::handler::{Handler, HandlerOutcome, PermanentReason};
pub use self::headers::Headers;
pub use self::hold::BackOff;
pub use self::key::{EventKey, KeyOrigin, Unnamed, UnnamedEvent};
pub use self::publish::{Outgoing, Publish, PublishError, PublishErrorKind};
pub use self::router::Router;
pub use self::run::{Run, RunError};
pub use self::source::{Delivery, DeliveryError, DeliveryErrorKind, Source};
