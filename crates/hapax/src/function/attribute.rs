//! The runtime part of `#[idempotent]`: how a call of such a function becomes a [`Once`]. Generated code uses it, and
//! `hapax-macros` has the same version; no other code may.

mod arguments;

use std::borrow::{Borrow, Cow};
use std::convert::Infallible;
use std::future::Future;
use std::marker::PhantomData;

use hapax_core::{Fingerprint, Key};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use self::arguments::{Argument, Arguments, Input, NoArguments, argument};
use super::outcome::{FailureKind, IntoOutcome, RunFailure, sealed};
use super::{Once, OnceError, SURFACE, fingerprint};
use crate::engine::Context;
use crate::hapax::Hapax;
use crate::observe;

/// One call of a protected function.
#[must_use]
pub struct Call {
    scope: &'static str,
    /// None without an engine.
    once: Option<Once>,
}

/// A call with these arguments. Without an engine it uses the default; without a key, the digest of its arguments is
/// the key.
pub fn call(
    engine: Option<&Hapax>,
    scope: &'static str,
    key: Option<String>,
    arguments: &impl Arguments,
) -> Call {
    let Some(hapax) = engine.cloned().or_else(Hapax::global) else { return Call { scope, once: None } };
    let input = fingerprint(&arguments::Named(arguments));
    let key = match (key, &input) {
        (Some(key), _) => Key::new(key),
        (None, Ok(input)) => Key::new(hex(input)),
        // Never used: the call is refused for its input.
        (None, Err(_)) => Key::new("-"),
    };
    let once = Once { input, ..Once::new(hapax, scope.into(), key) };
    Call { scope, once: Some(once) }
}

fn hex(fingerprint: &Fingerprint) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = fingerprint.digest().iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

impl Call {
    /// Sets options of the operation.
    pub fn with(mut self, set: impl FnOnce(Once) -> Once) -> Self {
        self.once = self.once.map(set);
        self
    }

    /// Runs `work`, or returns the result of an earlier run.
    ///
    /// # Errors
    /// As [`Once::run`], and [`OnceError::NoGlobal`].
    pub async fn run<R, W, F>(self, work: W) -> Result<R::Value, OnceError<R::Error>>
    where
        R: IntoOutcome,
        R::Value: Serialize + DeserializeOwned + Send + 'static,
        R::Error: Send + 'static,
        W: FnOnce(Context) -> F + Send + 'static,
        F: Future<Output = R> + Send + 'static,
    {
        let Some(once) = self.once else {
            observe::request(SURFACE, self.scope, observe::OutcomeLabel::Refused);
            return Err(OnceError::NoGlobal);
        };
        once.run(work).await.map(|done| done.value)
    }
}

/// What is behind a reference can be kept for the execution.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is passed by reference and cannot be cloned",
    label = "the execution may outlive its caller, so it needs a clone",
    note = "derive `Clone`, or pass it by value, for example in an `Arc`"
)]
pub trait Own: ToOwned {}

#[diagnostic::do_not_recommend]
impl<T: ToOwned + ?Sized> Own for T {}

/// The owned form of what was passed by reference.
pub trait Lend<T: ?Sized> {
    /// Lends it to the body.
    fn lend(&self) -> &T;
}

struct Owned<T: ToOwned + ?Sized>(T::Owned);

impl<T: ToOwned + ?Sized> Lend<T> for Owned<T> {
    fn lend(&self) -> &T {
        self.0.borrow()
    }
}

/// Clones it. The type is opaque, so that a missing `Clone` is one error and not one for each use.
pub fn keep<T: Own + ?Sized>(borrowed: &T) -> impl Lend<T> + use<T> {
    Owned::<T>(borrowed.to_owned())
}

/// The owned form of a `Cow`.
pub fn owned_cow<T: Own + ?Sized>(cow: Cow<'_, T>) -> Cow<'static, T>
where
    T::Owned: 'static,
{
    Cow::Owned(cow.into_owned())
}

/// The return value of a function that does not fail.
pub struct Plain<T>(pub T);

impl<T> sealed::Sealed for Plain<T> {}

impl<T> IntoOutcome for Plain<T> {
    type Value = T;
    type Error = Infallible;

    fn into_result(self) -> Result<T, RunFailure<Infallible>> {
        Ok(self.0)
    }
}

/// The return value of a function whose errors are final.
pub struct PinErrors<R>(pub R);

impl<R> sealed::Sealed for PinErrors<R> {}

impl<R: IntoOutcome> IntoOutcome for PinErrors<R> {
    type Value = R::Value;
    type Error = R::Error;

    fn into_result(self) -> Result<R::Value, RunFailure<R::Error>> {
        self.0.into_result().map_err(|failure| RunFailure { kind: FailureKind::Permanent, ..failure })
    }
}

/// Tells an alias of a `Result` from other types, by name resolution: the inherent constant wins.
pub struct Probe<T>(PhantomData<T>);

impl<T, E> Probe<Result<T, E>> {
    /// It is a `Result`.
    pub const IS_RESULT: bool = true;
}

/// The other types.
pub trait NotResult {
    /// It is no `Result`.
    const IS_RESULT: bool = false;
}

impl<T> NotResult for Probe<T> {}

/// Stands in a `return` that is never executed, to give an async block its type.
pub fn never_returned<T>() -> T {
    unreachable!("the generated code does not call it")
}
