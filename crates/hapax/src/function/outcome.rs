//! What a function's `Result` means for its record.

use std::fmt::Display;

use serde::Serialize;

use super::error::StoredError;

/// An error that says what it means for the record. A plain error is [`Fail::Retry`].
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
    /// The run failed for good: the error is pinned, and every retry gets it.
    Permanent {
        /// What this caller gets.
        error: E,
        /// What later callers get beside the error's text.
        data: Option<serde_json::Value>,
    },
    /// It is not known whether the operation happened: the record becomes uncertain.
    Unknown(E),
}

impl<E> Fail<E> {
    /// A permanent error; later callers get its text.
    pub fn permanent(error: E) -> Self {
        Self::Permanent { error, data: None }
    }

    /// A permanent error with data for later callers, such as an error code. Data that is not JSON is left out.
    pub fn permanent_with(error: E, data: impl Serialize) -> Self {
        Self::Permanent { error, data: serde_json::to_value(data).ok() }
    }
}

impl<E> From<E> for Fail<E> {
    fn from(error: E) -> Self {
        Self::Retry(error)
    }
}

/// What a run may return: `Result<T, E>`, or `Result<T, Fail<E>>` to say what an error means.
pub trait IntoOutcome: sealed::Sealed {
    /// The result.
    type Value;
    /// The error.
    type Error;

    #[doc(hidden)]
    fn into_result(self) -> Result<Self::Value, Failure<Self::Error>>;
}

/// An error with what it means and how it is stored.
#[doc(hidden)]
#[derive(Debug)]
pub struct Failure<E> {
    pub(super) error: E,
    pub(super) meaning: Meaning,
    pub(super) stored: StoredError,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Meaning {
    Retry,
    Permanent,
    Unknown,
}

impl<E: Display> Failure<E> {
    fn new(error: E, meaning: Meaning, data: Option<serde_json::Value>) -> Self {
        let stored = StoredError { message: error.to_string(), data };
        Self { error, meaning, stored }
    }
}

impl<T, E: Display> IntoOutcome for Result<T, E> {
    type Value = T;
    type Error = E;

    fn into_result(self) -> Result<T, Failure<E>> {
        self.map_err(|error| Failure::new(error, Meaning::Retry, None))
    }
}

// `Fail` is not `Display`, or this would overlap with the implementation above.
impl<T, E: Display> IntoOutcome for Result<T, Fail<E>> {
    type Value = T;
    type Error = E;

    fn into_result(self) -> Result<T, Failure<E>> {
        self.map_err(|fail| match fail {
            Fail::Retry(error) => Failure::new(error, Meaning::Retry, None),
            Fail::Permanent { error, data } => Failure::new(error, Meaning::Permanent, data),
            Fail::Unknown(error) => Failure::new(error, Meaning::Unknown, None),
        })
    }
}

mod sealed {
    pub trait Sealed {}
    impl<T, E> Sealed for Result<T, E> {}
}
