//! [`Once`]: make any async function idempotent.
//!
//! `Ok` is pinned and replayed. `Err` releases the key, so that a retry may run again, unless the error says
//! otherwise with [`Fail::Permanent`] or [`Fail::Unknown`].

#[cfg(feature = "macros")]
pub(crate) mod attribute;
mod codec;
mod error;
mod outcome;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use hapax_core::{Class, Fingerprint, Format, Key, KeyError, OnLapse, Reason, Recorded, Scope};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) use self::codec::BoxError;
use self::codec::format_of;
pub use self::codec::{Codec, Json};
pub use self::error::{OnceError, StoredError};
pub use self::outcome::{Fail, IntoOutcome};
pub(crate) use self::outcome::{FailureKind, RunFailure};
use crate::engine::{
    Claimed, Context, Ended, Execution, Finish, Operation, Question, Reconcile, Reconciled, not_kept,
};
use crate::hapax::Hapax;
use crate::observe;
use crate::policy::Policy;

/// The `surface` label of functions.
const SURFACE: &str = "function";

/// A value that can be used as a key.
pub trait IntoKey {
    /// The key, or why it is invalid.
    ///
    /// # Errors
    /// When it is empty, too long or contains an invalid character.
    fn into_key(self) -> Result<Key, KeyError>;
}

impl IntoKey for Key {
    fn into_key(self) -> Result<Key, KeyError> {
        Ok(self)
    }
}

impl IntoKey for &Key {
    fn into_key(self) -> Result<Key, KeyError> {
        Ok(self.clone())
    }
}

impl IntoKey for &str {
    fn into_key(self) -> Result<Key, KeyError> {
        Key::new(self)
    }
}

impl IntoKey for String {
    fn into_key(self) -> Result<Key, KeyError> {
        Key::new(self)
    }
}

/// One operation to be run once, made by [`Hapax::once`].
#[must_use = "nothing happens until `run` is called and awaited"]
pub struct Once {
    hapax: Hapax,
    scope: Scope,
    key: Result<Key, KeyError>,
    input: Result<Fingerprint, serde_json::Error>,
    policy: Policy,
    reconcile: Option<Reconcile>,
}

/// A result and its origin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Done<T> {
    /// The result.
    pub value: T,
    /// Whether it is the result of an earlier run.
    pub replayed: bool,
    /// Whether it is stored. If not, the result is valid all the same, and storing is retried in the background. Until
    /// that succeeds a retry gets [`OnceError::InProgress`], and once the lease has lapsed [`OnceError::Uncertain`];
    /// only with [`OnLapse::Rerun`] may it run again then.
    pub recorded: bool,
}

impl Once {
    pub(crate) fn new(hapax: Hapax, scope: Scope, key: Result<Key, KeyError>) -> Self {
        let policy = hapax.policy;
        Self { hapax, scope, key, input: Ok(Fingerprint::empty()), policy, reconcile: None }
    }

    /// The input of the operation. The same key with another input is refused with [`OnceError::Mismatch`].
    pub fn input(mut self, input: &(impl Serialize + ?Sized)) -> Self {
        self.input = fingerprint(input);
        self
    }

    /// Uses this policy instead of the one of the [`Hapax`].
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// How long the result is replayed to retries; see [`Policy::retention`].
    pub fn retention(mut self, retention: Duration) -> Self {
        self.policy = self.policy.retention(retention);
        self
    }

    /// How long the claim is valid without renewal; see [`Policy::lease`].
    pub fn lease(mut self, lease: Duration) -> Self {
        self.policy = self.policy.lease(lease);
        self
    }

    /// How long to wait for the result of another attempt; see [`Policy::wait`].
    pub fn wait(mut self, wait: Duration) -> Self {
        self.policy = self.policy.wait(wait);
        self
    }

    /// How long to wait for the run itself; see [`Policy::deadline`].
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.policy = self.policy.deadline(deadline);
        self
    }

    /// What happens when a lease lapses; see [`Policy::on_lapse`].
    pub fn on_lapse(mut self, on_lapse: OnLapse) -> Self {
        self.policy = self.policy.on_lapse(on_lapse);
        self
    }

    /// Checks whether the operation happened when its record is uncertain, before the caller is refused.
    pub fn reconcile<T, A, F>(mut self, ask: A) -> Self
    where
        T: Serialize + DeserializeOwned + Send + 'static,
        A: Fn(Question) -> F + Send + Sync + 'static,
        F: Future<Output = Reconciled<T>> + Send + 'static,
    {
        self.reconcile = Some(Arc::new(move |question| {
            let reconciled = ask(question);
            Box::pin(async move {
                match reconciled.await {
                    Reconciled::Applied(value) => Reconciled::Applied(encode(&Json, &value)),
                    Reconciled::NotApplied => Reconciled::NotApplied,
                    Reconciled::Unknown => Reconciled::Unknown,
                }
            })
        }));
        self
    }

    /// Runs `work`, or returns the result of an earlier run.
    ///
    /// Once the work has begun, dropping the returned future does not stop it: it goes on in a task of its own, and its
    /// result is recorded for the retry. Dropped before, nothing runs.
    ///
    /// # Errors
    /// [`OnceError`]; only [`OnceError::Failed`] means that the work ran now and failed.
    pub async fn run<T, E, W, F>(self, work: W) -> Result<Done<T>, OnceError<E>>
    where
        T: Serialize + DeserializeOwned + Send + 'static,
        E: Send + 'static,
        W: FnOnce(Context) -> F + Send + 'static,
        F: Future + Send + 'static,
        F::Output: IntoOutcome<Value = T, Error = E>,
    {
        self.run_with(Json, work).await
    }

    /// As [`run`](Self::run), with results recorded in the form of `codec`.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub async fn run_with<T, E, C, W, F>(self, codec: C, work: W) -> Result<Done<T>, OnceError<E>>
    where
        T: Send + 'static,
        E: Send + 'static,
        C: Codec<T>,
        W: FnOnce(Context) -> F + Send + 'static,
        F: Future + Send + 'static,
        F::Output: IntoOutcome<Value = T, Error = E>,
    {
        let scope = self.scope.clone();
        let result = self.claim_and_run(Arc::new(codec), work).await;
        observe::request(SURFACE, scope.operation(), counted_as(&result));
        result
    }

    async fn claim_and_run<T, E, C, W, F>(self, codec: Arc<C>, work: W) -> Result<Done<T>, OnceError<E>>
    where
        T: Send + 'static,
        E: Send + 'static,
        C: Codec<T>,
        W: FnOnce(Context) -> F + Send + 'static,
        F: Future + Send + 'static,
        F::Output: IntoOutcome<Value = T, Error = E>,
    {
        let hapax = self.hapax.clone();
        let permit = match hapax.engine.claim(self.operation()?).await? {
            Claimed::Replay(recorded) => return decode(&*codec, &recorded),
            Claimed::Run(permit) => permit,
        };
        let encoder = codec.clone();
        let work = move |context| async move { ended(&*encoder, work(context).await.into_result()) };
        match permit.run(work).await? {
            Execution::Ran { value, recorded } => {
                value.map(|value| Done { value, replayed: false, recorded }).map_err(OnceError::Failed)
            }
            Execution::Replayed(recorded) => decode(&*codec, &recorded),
        }
    }

    fn operation<E>(self) -> Result<Box<Operation>, OnceError<E>> {
        let key = self.key.map_err(OnceError::Key)?;
        let mut operation =
            Operation::new(self.scope, &key, self.policy).fingerprint(self.input.map_err(OnceError::Input)?);
        operation.reconcile = self.reconcile;
        Ok(Box::new(operation))
    }
}

/// Through the canonical form: maps that iterate in another order are the same input.
fn fingerprint(input: &(impl Serialize + ?Sized)) -> Result<Fingerprint, serde_json::Error> {
    serde_json::to_vec(input).map(|json| Fingerprint::builder().json("input", &json).build())
}

/// How the record ends after the work returned.
fn ended<T, E>(codec: &impl Codec<T>, result: Result<T, RunFailure<E>>) -> Ended<Result<T, E>> {
    match result {
        Ok(value) => Ended { finish: Finish::Pin(encode(codec, &value)), value: Ok(value) },
        Err(RunFailure { error, kind, stored }) => {
            let finish = match kind {
                FailureKind::Retry => Finish::Release(Some(stored.encode())),
                FailureKind::Permanent => Finish::Pin(stored.encode()),
                FailureKind::Unknown => Finish::Uncertain(Reason::Declared),
            };
            Ended { finish, value: Err(error) }
        }
    }
}

/// A value that cannot be written was produced all the same: it is recorded as not kept, and the work never runs again.
pub(crate) fn encode<T, C: Codec<T>>(codec: &C, value: &T) -> Recorded {
    match codec.encode(value) {
        Ok(bytes) => Recorded::new(Class::Success, format_of::<T, C>(), bytes),
        Err(error) => {
            tracing::error!(%error, "a result cannot be encoded and is not recorded; retries are refused as not available");
            not_kept(&Recorded::new(Class::Success, format_of::<T, C>(), Vec::new()))
        }
    }
}

pub(crate) fn decode<T, E, C: Codec<T>>(codec: &C, recorded: &Recorded) -> Result<Done<T>, OnceError<E>> {
    match (recorded.format, recorded.class) {
        (format, Class::Success) if format == format_of::<T, C>() => codec
            .decode(&recorded.payload)
            .map(|value| Done { value, replayed: true, recorded: true })
            .map_err(|error| OnceError::ResultUnavailable { source: Some(error) }),
        (Format::FUNCTION | Format::OPERATOR, Class::Error) => {
            Err(OnceError::PreviouslyFailed(StoredError::decode(recorded)))
        }
        // Not kept, or written by another surface in its own format.
        _ => Err(OnceError::ResultUnavailable { source: None }),
    }
}

pub(crate) fn counted_as<T, E>(result: &Result<Done<T>, OnceError<E>>) -> observe::OutcomeLabel {
    use observe::OutcomeLabel as Counted;
    match result {
        Ok(done) if done.replayed => Counted::Replayed,
        Ok(done) if !done.recorded => Counted::Unrecorded,
        Ok(_) => Counted::Ran,
        Err(OnceError::Failed(_)) => Counted::Failed,
        Err(OnceError::PreviouslyFailed(_) | OnceError::ResultUnavailable { .. }) => Counted::Replayed,
        Err(OnceError::InProgress { .. }) => Counted::InProgress,
        Err(OnceError::Mismatch) => Counted::Mismatch,
        Err(OnceError::Uncertain { .. } | OnceError::Unreadable { .. } | OnceError::Superseded { .. }) => {
            Counted::Uncertain
        }
        Err(OnceError::Deadline { .. }) => Counted::Deadline,
        Err(OnceError::Store(_)) => Counted::StoreError,
        Err(
            OnceError::Key(_)
            | OnceError::Expired
            | OnceError::Input(_)
            | OnceError::Draining
            | OnceError::NoGlobal,
        ) => Counted::Refused,
    }
}
