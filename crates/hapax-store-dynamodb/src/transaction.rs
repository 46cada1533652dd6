//! Transactional mode: the outcome and the caller's own items are written together or not at all.
//!
//! The claim is the ordinary one. The effect of the operation is then a list of [`Writes`] to tables of the same account and
//! Region, and [`DynamoDbStore::complete_with`] applies them in one `TransactWriteItems` with the record, on condition
//! that the record still belongs to this attempt. The effect happens exactly once: an attempt that was taken over is fenced
//! out together with its writes, so a lapsed claim may be run again
//! ([`OnLapse::Rerun`](hapax_core::OnLapse::Rerun)).

use std::fmt;
use std::time::Duration;

use hapax_core::{Fenced, Lease, Recorded, StoreError, transition};
use serde_json::{Value, json};

use crate::change::Change;
use crate::error::{CallFailure, Effect};
use crate::store::DynamoDbStore;

/// The service's limit for one transaction, less the record.
const WRITES_MAX: usize = 99;

/// Writes to the caller's own items, in the service's format. [`DynamoDbStore::writes_of`] collects them for the work of an
/// attempt whose outcome is recorded by the engine.
///
/// ```
/// use hapax_store_dynamodb::Writes;
/// use serde_json::json;
///
/// let writes = Writes::new()
///     .put("orders", json!({"id": {"S": "order-1"}, "total": {"N": "12"}}))
///     .item(json!({"Update": {
///         "TableName": "stock",
///         "Key": {"id": {"S": "book"}},
///         "UpdateExpression": "ADD items :taken",
///         "ConditionExpression": "items > :zero",
///         "ExpressionAttributeValues": {":taken": {"N": "-1"}, ":zero": {"N": "0"}},
///     }}));
/// # drop(writes);
/// ```
#[derive(Clone, Default)]
#[must_use]
pub struct Writes {
    items: Vec<Value>,
}

impl Writes {
    /// No writes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts `item` into `table`, replacing any item with the same key.
    pub fn put(self, table: &str, item: Value) -> Self {
        self.item(json!({"Put": {"TableName": table, "Item": item}}))
    }

    /// Any element of `TransactItems`: `Put`, `Update`, `Delete` or `ConditionCheck`.
    pub fn item(mut self, item: Value) -> Self {
        self.items.push(item);
        self
    }
}

impl fmt::Debug for Writes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Only the count: the items may hold what must not be logged.
        f.debug_struct("Writes").field("items", &self.items.len()).finish()
    }
}

/// A condition of the caller's own did not hold: nothing was written, and the claim stands. The source of an
/// [`Invalid`](hapax_core::StoreErrorKind::Invalid) error of [`DynamoDbStore::complete_with`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the condition of item {item} of the transaction did not hold")]
pub struct Declined {
    /// The index of the write.
    pub item: usize,
}

impl DynamoDbStore {
    /// Pins the outcome of an attempt together with `writes`, in one transaction. For callers of the store itself: where an
    /// engine completes the attempt, collect them with [`writes_of`](Self::writes_of).
    ///
    /// *Atomic*: all of it or nothing. *Dropped*: applied or not. *Lost reply*: repeating returns [`Fenced::Applied`] and
    /// writes nothing again, however much later: the record is the guard, not a token that the service forgets.
    /// [`Fenced::Lost`] means that another attempt holds the claim and that none of the writes happened.
    ///
    /// # Errors
    /// As [`Store::complete`](hapax_core::Store::complete); and [`Invalid`](hapax_core::StoreErrorKind::Invalid) with a
    /// [`Declined`] as its source if a condition of `writes` did not hold, which leaves the claim to its owner.
    pub async fn complete_with(
        &self,
        lease: &Lease,
        done: &Recorded,
        retention: Duration,
        writes: &Writes,
    ) -> Result<Fenced, StoreError> {
        const OP: &str = "complete";
        if writes.items.len() > WRITES_MAX {
            return Err(CallFailure::TooManyItems.error(OP, Effect::Read));
        }
        self.check_size(OP, done)?;
        let change = Change { beside: &writes.items, ..Change::new(&self.client, OP, &lease.id) };
        let (answer, _) = change
            .make(change.known(lease.fence.nonce), |stored, now| {
                transition::complete(stored.map(|stored| &stored.record), lease, done, retention, now)
            })
            .await?;
        self.attempts.forget(lease.fence.nonce);
        Ok(answer)
    }
}
