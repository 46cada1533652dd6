//! [`FromEvent`]: what a handler gets of an event.

use std::error::Error;
use std::fmt;

use bytes::Bytes;
use serde::de::DeserializeOwned;

use super::event::Event;
use crate::function::BoxError;

/// A value that is decoded from an event before its handler runs.
///
/// Implemented for [`Event`], for its [`Data`], for its data as [`Bytes`], and for pairs of them. An event from which it
/// cannot be decoded fails permanently.
///
/// ```
/// use hapax::events::{Event, FromEvent, Undecodable};
///
/// struct Measurement(f64);
///
/// impl FromEvent for Measurement {
///     fn from_event(event: &Event) -> Result<Self, Undecodable> {
///         let bytes = <[u8; 8]>::try_from(&event.data[..])
///             .map_err(|error| Undecodable::new("a measurement has 8 bytes").with_source(error))?;
///         Ok(Self(f64::from_le_bytes(bytes)))
///     }
/// }
///
/// let event = Event::new("temperature.measured").data(20.5_f64.to_le_bytes().to_vec());
/// assert_eq!(Measurement::from_event(&event)?.0, 20.5);
/// # Ok::<(), Undecodable>(())
/// ```
pub trait FromEvent: Sized {
    /// Decodes it.
    ///
    /// # Errors
    /// [`Undecodable`] when the event is not of this form. A retry would fail as well, so the handler is not run.
    fn from_event(event: &Event) -> Result<Self, Undecodable>;
}

/// The data of an event, decoded from JSON whatever its content type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Data<T>(pub T);

/// An event is not of the form that its handler takes.
///
/// Its text shows nothing of the event; the source may.
#[derive(Debug)]
pub struct Undecodable {
    why: String,
    source: Option<BoxError>,
}

impl FromEvent for Event {
    fn from_event(event: &Event) -> Result<Self, Undecodable> {
        Ok(event.clone())
    }
}

impl FromEvent for Bytes {
    fn from_event(event: &Event) -> Result<Self, Undecodable> {
        Ok(event.data.clone())
    }
}

impl<T: DeserializeOwned> FromEvent for Data<T> {
    fn from_event(event: &Event) -> Result<Self, Undecodable> {
        serde_json::from_slice(&event.data).map(Self).map_err(|error| {
            let place = format!("line {} column {}", error.line(), error.column());
            let why = match error.classify() {
                serde_json::error::Category::Data => "the data is JSON of another form",
                _ => "the data is not JSON",
            };
            Undecodable::new(format!("{why}, at {place}")).with_source(error)
        })
    }
}

impl<A: FromEvent, B: FromEvent> FromEvent for (A, B) {
    fn from_event(event: &Event) -> Result<Self, Undecodable> {
        Ok((A::from_event(event)?, B::from_event(event)?))
    }
}

impl Undecodable {
    /// The reason, as a sentence that shows nothing of the event.
    pub fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), source: None }
    }

    /// Attaches the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }
}

impl fmt::Display for Undecodable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl Error for Undecodable {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|source| &**source as &(dyn Error + 'static))
    }
}
