//! [`Handler`]: what processes an event, and [`HandlerOutcome`], how that ends.

use std::error::Error as _;
use std::future::Future;

use hapax_core::{BoxFuture, Class, Format, Recorded};
use serde::Serialize;

use super::event::Event;
use super::from_event::{FromEvent, Undecodable};
use crate::engine::{Context, not_kept};
use crate::function::{FailureKind, IntoOutcome, StoredError};

/// Processes events of one type.
///
/// Every `Fn(S, Context, P) -> impl Future<Output = Result<T, E>>` is a handler, where `P` implements [`FromEvent`], `T` can
/// be written as JSON and `E` has a text. It gets a clone of the router's state. Its error states how the record ends, as
/// in [`Once::run`](crate::Once::run): a plain error is tried again, [`Fail::permanent`](crate::Fail::permanent) is not.
///
/// `Args` only tells implementations for different functions apart. A wrapper implements the trait for its own type:
///
/// ```
/// use std::time::Instant;
///
/// use hapax::Context;
/// use hapax::core::BoxFuture;
/// use hapax::events::{Event, Handler, HandlerOutcome};
///
/// /// Runs another handler and reports how long it took.
/// struct Timed<H>(H);
///
/// impl<S, Args, H: Handler<S, Args>> Handler<S, Args> for Timed<H> {
///     fn call(&self, state: S, context: Context, event: Event) -> BoxFuture<'static, HandlerOutcome> {
///         let began = Instant::now();
///         let outcome = self.0.call(state, context, event);
///         Box::pin(async move {
///             let outcome = outcome.await;
///             println!("{:?}", began.elapsed());
///             outcome
///         })
///     }
/// }
/// ```
pub trait Handler<S, Args>: Send + Sync + 'static {
    /// Processes the event. Called once for each attempt, inside of the attempt.
    fn call(&self, state: S, context: Context, event: Event) -> BoxFuture<'static, HandlerOutcome>;
}

/// How a handler's run ended.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum HandlerOutcome {
    /// The event is processed. The result is recorded.
    Done(Recorded),
    /// The run failed and is to be tried again.
    Retry(StoredError),
    /// The event cannot be processed: it becomes a dead letter.
    Permanent {
        /// Why a retry would fail as well.
        reason: PermanentReason,
        /// The error.
        error: StoredError,
    },
    /// It is unknown whether the event was processed.
    Unknown(StoredError),
}

/// Why an event cannot be processed by its handler.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum PermanentReason {
    /// The handler returned [`Fail::Permanent`](crate::Fail::Permanent).
    Permanent,
    /// The handler's argument cannot be decoded from the event.
    Undecodable,
    /// No handler is registered for the event's type (V-08).
    UnknownType,
}

impl PermanentReason {
    /// The name used in metrics and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Permanent => "permanent",
            Self::Undecodable => "undecodable",
            Self::UnknownType => "unknown_type",
        }
    }
}

impl HandlerOutcome {
    /// The outcome that a handler's result stands for: `Result<T, E>` or `Result<T, Fail<E>>`.
    pub fn of<R>(result: R) -> Self
    where
        R: IntoOutcome,
        R::Value: Serialize,
    {
        match result.into_result() {
            Ok(value) => Self::Done(recorded(&value)),
            Err(failure) => match failure.kind {
                FailureKind::Retry => Self::Retry(failure.stored),
                FailureKind::Permanent => {
                    Self::Permanent { reason: PermanentReason::Permanent, error: failure.stored }
                }
                FailureKind::Unknown => Self::Unknown(failure.stored),
            },
        }
    }

    /// No handler is registered for events of this type.
    pub(super) fn unknown_type(kind: &str) -> Self {
        // A type may be any text, and a record is no place for a long one.
        let shown: String = kind.chars().take(KIND_SHOWN_MAX).collect();
        let message = format!("no handler is registered for events of the type {shown:?}");
        Self::Permanent { reason: PermanentReason::UnknownType, error: StoredError { message, data: None } }
    }
}

/// How many characters of an unknown type are shown.
const KIND_SHOWN_MAX: usize = 200;

/// An argument that cannot be decoded is a permanent failure. The stored error has the text of every cause.
impl From<Undecodable> for HandlerOutcome {
    fn from(undecodable: Undecodable) -> Self {
        let mut message = undecodable.to_string();
        let mut cause = undecodable.source();
        while let Some(error) = cause {
            message = format!("{message}: {error}");
            cause = error.source();
        }
        Self::Permanent { reason: PermanentReason::Undecodable, error: StoredError { message, data: None } }
    }
}

impl<S, P, H, W> Handler<S, (Context, P)> for H
where
    P: FromEvent,
    H: Fn(S, Context, P) -> W + Send + Sync + 'static,
    W: Future + Send + 'static,
    W::Output: IntoOutcome,
    <W::Output as IntoOutcome>::Value: Serialize,
{
    fn call(&self, state: S, context: Context, event: Event) -> BoxFuture<'static, HandlerOutcome> {
        match P::from_event(&event) {
            Ok(payload) => {
                let work = self(state, context, payload);
                Box::pin(async move { HandlerOutcome::of(work.await) })
            }
            Err(undecodable) => Box::pin(std::future::ready(undecodable.into())),
        }
    }
}

/// The result as JSON, as functions record it. One that cannot be written is recorded as not kept: the event is processed
/// all the same.
fn recorded(value: &impl Serialize) -> Recorded {
    match serde_json::to_vec(value) {
        Ok(json) => Recorded::new(Class::Success, Format::FUNCTION, json),
        Err(error) => {
            tracing::error!(%error, "the result of an event cannot be written as JSON and is not recorded");
            not_kept(&Recorded::new(Class::Success, Format::FUNCTION, Vec::new()))
        }
    }
}
