//! [`Consumer::process`]: one attempt at an event, for a loop that talks to its broker itself.

use std::future::Future;

use hapax_core::KeyError;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Consumer;
use crate::engine::Context;
use crate::events::attempt::{Attempted, Worked};
use crate::events::dead_letter::{self, DeadReason};
use crate::events::decide::Write;
use crate::events::event::Event;
use crate::events::handler::{HandlerOutcome, PermanentReason};
use crate::function::{
    Done, FailureKind, IntoOutcome, Json, OnceError, RunFailure, StoredError, counted_as, decode, encode,
};
use crate::observe;

impl Consumer {
    /// Makes one attempt at an event, or returns the result of an earlier one. It neither retries nor calls a broker:
    ///
    /// - with `Ok`, acknowledge the delivery if [`Done::recorded`] is true, whether it was replayed or not;
    /// - with [`OnceError::PreviouslyFailed`] or [`OnceError::ResultUnavailable`], acknowledge it: its outcome is recorded;
    /// - otherwise do not. [`OnceError::Mismatch`] means that the event has the key of another one: keep a copy of it.
    ///
    /// A failure is counted as [`handle`](Self::handle) counts it, and the event is a dead letter at the last one, or at a
    /// [`Fail::Permanent`](crate::Fail::Permanent). Once the work has begun, dropping the returned future does not stop
    /// it.
    ///
    /// # Errors
    /// As [`Once::run`](crate::Once::run). An event without a key is refused with [`OnceError::Key`].
    pub async fn process<T, E, W, F>(&self, event: &Event, work: W) -> Result<Done<T>, OnceError<E>>
    where
        T: Serialize + DeserializeOwned + Send + 'static,
        E: Send + 'static,
        W: FnOnce(Context) -> F + Send + 'static,
        F: Future + Send + 'static,
        F::Output: IntoOutcome<Value = T, Error = E>,
    {
        let result = self.process_uncounted(event, work).await;
        observe::request("event", self.name(), counted_as(&result));
        result
    }

    async fn process_uncounted<T, E, W, F>(&self, event: &Event, work: W) -> Result<Done<T>, OnceError<E>>
    where
        T: Serialize + DeserializeOwned + Send + 'static,
        E: Send + 'static,
        W: FnOnce(Context) -> F + Send + 'static,
        F: Future + Send + 'static,
        F::Output: IntoOutcome<Value = T, Error = E>,
    {
        let keyed = self.keyed(event, None);
        if keyed.is_unnamed {
            return Err(OnceError::Key(KeyError::Empty));
        }
        let work = move |context| async move {
            match work(context).await.into_result() {
                Ok(value) => {
                    Worked { outcome: HandlerOutcome::Done(encode(&Json, &value)), value: Ok(value) }
                }
                Err(failure) => Worked { outcome: failed(&failure), value: Err(failure.into_error()) },
            }
        };
        let attempted = self.attempt(&keyed, work).await;
        if attempted.is_concluded() {
            self.forget_redriven(&keyed).await;
        }
        match attempted {
            Attempted::Ran { value, is_recorded, .. } => value
                .map(|value| Done { value, replayed: false, recorded: is_recorded })
                .map_err(OnceError::Failed),
            Attempted::Replayed { recorded, .. } if dead_letter::is_dead_letter(&recorded) => {
                let (reason, message) = dead_letter::error_of(&recorded).unwrap_or_default();
                let data = Some(serde_json::json!({ "dead_letter": reason }));
                Err(OnceError::PreviouslyFailed(StoredError { message, data }))
            }
            Attempted::Replayed { recorded, .. } => decode(&Json, &recorded),
            Attempted::Overdue { decision, is_recorded: true }
                if decision.write == Write::DeadLetter(DeadReason::Lost) =>
            {
                let message = DeadReason::Lost.words().to_owned();
                let data = Some(serde_json::json!({ "dead_letter": DeadReason::Lost.name() }));
                Err(OnceError::PreviouslyFailed(StoredError { message, data }))
            }
            Attempted::Overdue { .. } => Err(OnceError::Superseded { id: keyed.id }),
            Attempted::Refused { refusal, .. } => Err(refusal.into()),
        }
    }
}

/// The outcome that a failure stands for.
fn failed<E>(failure: &RunFailure<E>) -> HandlerOutcome {
    let error = failure.stored.clone();
    match failure.kind {
        FailureKind::Retry => HandlerOutcome::Retry(error),
        FailureKind::Permanent => HandlerOutcome::Permanent { reason: PermanentReason::Permanent, error },
        FailureKind::Unknown => HandlerOutcome::Unknown(error),
    }
}
