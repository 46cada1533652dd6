//! [`AttemptWrites`]: the caller's writes of an attempt, sent together with its outcome.
//!
//! The claim is the ordinary one. [`Store::complete`](hapax_core::Store::complete) finds the writes by the attempt's nonce and
//! sends them in one transaction with a success, as [`DynamoDbStore::complete_with`] does. So engine and surfaces need not
//! know of them.
//!
//! An outcome must never be recorded without its writes. So they are kept until it is known how the transaction ended, and
//! a repeated completion sends the same writes again: the record is the guard against applying them twice.

use std::collections::HashMap;
use std::error::Error as _;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hapax_core::{Class, Fence, Fenced, Lease, Nonce, Recorded, StoreError, StoreErrorKind, transition};
use parking_lot::Mutex;
use serde_json::Value;

use crate::error::{CallFailure, Effect};
use crate::store::DynamoDbStore;
use crate::transaction::Writes;

/// Collects the writes of an attempt, made by [`DynamoDbStore::writes_of`].
///
/// They are sent when the attempt's success is recorded, and only if every handle on them has been dropped: a remaining one
/// could still add to them. Without success they are dropped.
pub struct AttemptWrites(Arc<Mutex<Writes>>);

impl AttemptWrites {
    /// Puts `item` into `table`, replacing any item with the same key.
    pub fn put(&self, table: &str, item: Value) -> &Self {
        self.add(|writes| writes.put(table, item))
    }

    /// Any element of `TransactItems`: `Put`, `Update`, `Delete` or `ConditionCheck`.
    pub fn item(&self, item: Value) -> &Self {
        self.add(|writes| writes.item(item))
    }

    fn add(&self, add: impl FnOnce(Writes) -> Writes) -> &Self {
        let mut writes = self.0.lock();
        *writes = add(std::mem::take(&mut *writes));
        self
    }
}

impl fmt::Debug for AttemptWrites {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AttemptWrites").field(&*self.0.lock()).finish()
    }
}

/// The attempts that have claimed their key through this store, with their writes.
///
/// An attempt that claimed elsewhere has none: its completion would not see the writes, and would record a success whose
/// effect never happens.
#[derive(Default)]
pub(crate) struct Attempts(Mutex<HashMap<Nonce, AttemptState>>);

enum AttemptState {
    /// It has no writes.
    Claimed,
    Collecting(Arc<Mutex<Writes>>),
    /// Its completion was sent with these, and the result is not known yet.
    Ending(Writes),
}

/// What a completion has to send beside the outcome.
enum Beside {
    Nothing,
    Writes(Writes),
    /// A handle that could add more.
    Held,
}

impl Attempts {
    /// Adds an attempt that has claimed its key.
    pub(crate) fn claimed(&self, attempt: Nonce) {
        self.0.lock().entry(attempt).or_insert(AttemptState::Claimed);
    }

    /// Drops the writes of an attempt that has ended.
    pub(crate) fn forget(&self, attempt: Nonce) {
        self.0.lock().remove(&attempt);
    }

    fn collect(&self, attempt: Nonce) -> Result<AttemptWrites, CallFailure> {
        let mut attempts = self.0.lock();
        let state = attempts.get_mut(&attempt).ok_or(CallFailure::NotClaimed)?;
        if let AttemptState::Claimed = state {
            *state = AttemptState::Collecting(Arc::default());
        }
        match state {
            AttemptState::Collecting(writes) => Ok(AttemptWrites(writes.clone())),
            AttemptState::Claimed | AttemptState::Ending(_) => Err(CallFailure::NotClaimed),
        }
    }

    /// Closes the list: from here on the attempt has these writes.
    fn close(&self, attempt: Nonce) -> Beside {
        let mut attempts = self.0.lock();
        let writes = match attempts.remove(&attempt) {
            None | Some(AttemptState::Claimed) => return Beside::Nothing,
            Some(AttemptState::Collecting(writes)) => match Arc::try_unwrap(writes) {
                Ok(writes) => writes.into_inner(),
                Err(_held) => return Beside::Held,
            },
            Some(AttemptState::Ending(writes)) => writes,
        };
        attempts.insert(attempt, AttemptState::Ending(writes.clone()));
        Beside::Writes(writes)
    }
}

impl fmt::Debug for Attempts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempts").field("open", &self.0.lock().len()).finish()
    }
}

impl DynamoDbStore {
    /// Collects writes for an attempt that has claimed its key in this store. They are applied together with the attempt's
    /// success, so the effect happens **exactly once**, whichever process crashes at whatever time; see
    /// [`complete_with`](Self::complete_with). The same attempt gets the same list again.
    ///
    /// The attempt is the `Context::fence` of the crate `hapax`, for a handler or for the work of `Hapax::once`. With
    /// `OnLapse::Rerun` an attempt that was killed is run again; none of its writes happened.
    ///
    /// If one of the caller's conditions does not hold, or the service refuses the writes, nothing is applied, the key is
    /// released, and the attempt is reported as lost: its result does not leave, and it is tried again.
    ///
    /// ```no_run
    /// # async fn order(store: &hapax_store_dynamodb::DynamoDbStore, fence: hapax_core::Fence) -> Result<(), hapax_core::StoreError> {
    /// use serde_json::json;
    ///
    /// store.writes_of(fence)?.put("orders", json!({"id": {"S": "order-1"}, "total": {"N": "12"}}));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Invalid`](StoreErrorKind::Invalid) if the attempt has ended, or has not claimed its key through this same store
    /// value: only that one sees its completion.
    pub fn writes_of(&self, attempt: Fence) -> Result<AttemptWrites, StoreError> {
        self.attempts.collect(attempt.nonce).map_err(|failure| failure.error("collect", Effect::Read))
    }

    /// Pins the outcome together with the attempt's writes. `None` if the outcome must be recorded alone: there are none, or
    /// they were dropped because the outcome is an error.
    pub(crate) async fn complete_with_collected(
        &self,
        lease: &Lease,
        done: &Recorded,
        retention: Duration,
    ) -> Option<Result<Fenced, StoreError>> {
        let attempt = lease.fence.nonce;
        if done.class == Class::Error {
            self.attempts.forget(attempt);
            return None;
        }
        let refused = match self.attempts.close(attempt) {
            Beside::Nothing => return None,
            Beside::Held => "the handler has ended and still holds its writes".to_owned(),
            Beside::Writes(writes) => match self.complete_with(lease, done, retention, &writes).await {
                Ok(fenced) => return Some(Ok(fenced)),
                Err(error) if is_final(error.kind()) => {
                    error.source().map_or_else(|| error.to_string(), ToString::to_string)
                }
                // Unknown, or the service is away: the same call again resolves it.
                Err(error) => return Some(Err(error)),
            },
        };
        tracing::error!(id = %lease.id, "none of the attempt's writes was applied: {refused}");
        self.attempts.forget(attempt);
        let release = |record: Option<&_>, now| transition::release(record, lease, None, now);
        // If the service cannot be reached, the lease lapses.
        let _ = self.fenced("release", lease, release).await;
        Some(Ok(Fenced::Lost))
    }
}

/// Whether the service refused the transaction for what is in it: nothing was applied, and nothing ever will be.
fn is_final(kind: StoreErrorKind) -> bool {
    matches!(kind, StoreErrorKind::Invalid | StoreErrorKind::TooLarge | StoreErrorKind::Incompatible)
}
