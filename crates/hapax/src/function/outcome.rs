//! How a function's `Result` ends its record.

use std::fmt::Display;

use serde::Serialize;

use super::error::StoredError;

/// An error that states how the record ends. A plain error is [`Fail::Retry`].
///
/// ```
/// use hapax::Fail;
///
/// fn charge(card: &str) -> Result<u32, Fail<String>> {
///     match card {
///         "declined" => Err(Fail::permanent("card declined".to_owned())),
///         "busy" => Err("try again".to_owned())?,
///         _ => Ok(1),
///     }
/// }
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fail<E> {
    /// The run failed and may be tried again: the key is released.
    Retry(E),
    /// The run failed permanently: the error is pinned, and every retry gets it.
    Permanent {
        /// The error for this caller.
        error: E,
        /// Data for later callers, in addition to the error's text.
        data: Option<serde_json::Value>,
    },
    /// It is unknown whether the operation happened: the record becomes uncertain.
    Unknown(E),
}

impl<E> Fail<E> {
    /// A permanent error; later callers get its text.
    pub fn permanent(error: E) -> Self {
        Self::Permanent { error, data: None }
    }

    /// A permanent error with data for later callers, such as an error code. Data that cannot be written as JSON is
    /// omitted.
    pub fn permanent_with(error: E, data: impl Serialize) -> Self {
        Self::Permanent { error, data: serde_json::to_value(data).ok() }
    }
}

impl<E> From<E> for Fail<E> {
    fn from(error: E) -> Self {
        Self::Retry(error)
    }
}

/// The return type of a run: `Result<T, E>`, or `Result<T, Fail<E>>` to state how the record ends.
pub trait IntoOutcome: sealed::Sealed {
    /// The result.
    type Value;
    /// The error.
    type Error;

    #[doc(hidden)]
    fn into_result(self) -> Result<Self::Value, RunFailure<Self::Error>>;
}

/// An error, how it ends the record, and its stored form.
#[doc(hidden)]
#[derive(Debug)]
pub struct RunFailure<E> {
    pub(super) error: E,
    pub(crate) kind: FailureKind,
    pub(crate) stored: StoredError,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum FailureKind {
    Retry,
    Permanent,
    Unknown,
}

impl<E> RunFailure<E> {
    #[doc(hidden)]
    pub fn into_error(self) -> E {
        self.error
    }
}

impl<E: Display> RunFailure<E> {
    fn new(error: E, kind: FailureKind, data: Option<serde_json::Value>) -> Self {
        let stored = StoredError { message: error.to_string(), data };
        Self { error, kind, stored }
    }
}

impl<T, E: Display> IntoOutcome for Result<T, E> {
    type Value = T;
    type Error = E;

    fn into_result(self) -> Result<T, RunFailure<E>> {
        self.map_err(|error| RunFailure::new(error, FailureKind::Retry, None))
    }
}

// `Fail` does not implement `Display`, so this does not overlap with the implementation above.
impl<T, E: Display> IntoOutcome for Result<T, Fail<E>> {
    type Value = T;
    type Error = E;

    fn into_result(self) -> Result<T, RunFailure<E>> {
        self.map_err(|fail| match fail {
            Fail::Retry(error) => RunFailure::new(error, FailureKind::Retry, None),
            Fail::Permanent { error, data } => RunFailure::new(error, FailureKind::Permanent, data),
            Fail::Unknown(error) => RunFailure::new(error, FailureKind::Unknown, None),
        })
    }
}

pub(super) mod sealed {
    pub trait Sealed {}
    impl<T, E> Sealed for Result<T, E> {}
}
