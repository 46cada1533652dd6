//! [`Tx`]: a transaction that an attempt of the ordinary mode writes in, and that is committed together with its outcome.
//!
//! The claim is committed before, so others are told at once that the key is busy, and leases are renewed as ever. What
//! makes the effect happen once is the end: the completion is a statement of the same transaction and holds only while
//! the record still belongs to the attempt. An attempt that lost its record commits nothing.
//!
//! An outcome whose transaction may be lost must never be recorded by itself: a retry would be told of an effect that did
//! not happen. So an attempt that has joined stays in the list until it is known how its transaction ended.

use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use hapax_core::{Class, Fence, Fenced, Lease, Nonce, Recorded, StoreError};
use parking_lot::Mutex;
use tokio::time::timeout_at;
use tokio_postgres::Client;

use crate::error::{Effect, Fault, Refusal};
use crate::link::Lent;
use crate::store::PostgresStore;
use crate::write::{Write, write};

/// The savepoint is there to be given up at the end: that fails when the work has ended the transaction itself.
const BEGIN: &str = "BEGIN; SAVEPOINT hapax_work";
const COMMIT: &str = "RELEASE SAVEPOINT hapax_work; COMMIT";

/// An open transaction of an attempt, made by [`PostgresStore::transaction_of`].
///
/// It is the connection, to send statements on. It is committed when the attempt's success is recorded, and only once
/// every handle on it is dropped. Without success it is rolled back. It must not be ended by the work itself.
pub struct Tx(Arc<Lent>);

impl Deref for Tx {
    type Target = Client;

    fn deref(&self) -> &Client {
        self.0.client()
    }
}

impl fmt::Debug for Tx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tx").finish_non_exhaustive()
    }
}

/// The attempts that have claimed their key here, with their transactions.
///
/// One that claimed elsewhere has none: whoever completes it would know of no transaction, and record a success whose
/// effect nobody commits.
#[derive(Default)]
pub(crate) struct Joined(Mutex<HashMap<Nonce, Part>>);

enum Part {
    /// It has not asked for one.
    Claimed,
    Open(Arc<Lent>),
    /// Its end was begun, and nobody has yet said how that went.
    Ending,
}

impl Joined {
    /// An attempt has claimed its key.
    pub(crate) fn claimed(&self, attempt: Nonce) {
        self.0.lock().entry(attempt).or_insert(Part::Claimed);
    }

    /// The attempt's transaction, if it has begun one.
    fn open(&self, attempt: Nonce) -> Result<Option<Tx>, Refusal> {
        match self.0.lock().get(&attempt) {
            None => Err(Refusal::NotClaimed),
            Some(Part::Claimed) => Ok(None),
            Some(Part::Open(lent)) => Ok(Some(Tx(lent.clone()))),
            Some(Part::Ending) => Err(Refusal::Ending),
        }
    }

    /// The attempt's transaction: this one, unless it has one already.
    fn enter(&self, attempt: Nonce, lent: Lent) -> Result<Tx, Refusal> {
        let mut attempts = self.0.lock();
        let part = attempts.get_mut(&attempt).ok_or(Refusal::Ending)?;
        if let Part::Claimed = part {
            *part = Part::Open(Arc::new(lent));
        }
        match part {
            Part::Open(lent) => Ok(Tx(lent.clone())),
            Part::Claimed | Part::Ending => Err(Refusal::Ending),
        }
    }

    /// Whoever gets the transaction ends it.
    fn end(&self, attempt: Nonce) -> Option<Part> {
        self.0.lock().get_mut(&attempt).map(|part| std::mem::replace(part, Part::Ending))
    }

    fn forget(&self, attempt: Nonce) {
        self.0.lock().remove(&attempt);
    }
}

impl fmt::Debug for Joined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Joined").field("attempts", &self.0.lock().len()).finish()
    }
}

impl PostgresStore {
    /// A transaction for the work of an attempt that has claimed its key in this store. What is written in it is
    /// committed in one with the attempt's success, so it happens **exactly once**, whoever is killed whenever, as far
    /// as the server keeps what it has committed. The same attempt gets the same transaction again.
    ///
    /// The attempt is what `Context::fence` of the crate `hapax` tells a handler or the work of `Hapax::once`. With
    /// `OnLapse::Rerun` an attempt that was killed is run again; it cannot have happened.
    ///
    /// # Errors
    /// [`Unavailable`](hapax_core::StoreErrorKind::Unavailable) when there is no connection in time,
    /// [`Invalid`](hapax_core::StoreErrorKind::Invalid) when the attempt has ended, or has not claimed its key by this
    /// very value: only that will be told when it succeeds.
    pub async fn transaction_of(&self, attempt: Fence) -> Result<Tx, StoreError> {
        let op = "begin";
        let refused = |refusal: Refusal| refusal.error(op, Effect::Read);
        if let Some(tx) = self.joined.open(attempt.nonce).map_err(refused)? {
            return Ok(tx);
        }
        let deadline = self.link.deadline();
        let lent = self.link.lend_for_work(op, deadline).await?;
        match timeout_at(deadline, lent.client().batch_execute(BEGIN)).await {
            Ok(Ok(())) => self.joined.enter(attempt.nonce, lent).map_err(refused),
            Ok(Err(error)) => Err(Fault::of(&error).error(op, Effect::Read)),
            Err(_elapsed) => Err(refused(Refusal::TimedOut)),
        }
    }

    /// Ends the attempt's transaction with its outcome. `None` when the outcome is to be recorded by itself: there is no
    /// transaction, or it is rolled back because the outcome is an error.
    pub(crate) async fn complete_joined(
        &self,
        lease: &Lease,
        done: &Recorded,
        retention: Duration,
    ) -> Option<Fenced> {
        let attempt = lease.fence.nonce;
        let part = self.joined.end(attempt)?;
        if done.class == Class::Error {
            self.roll_back(part).await;
            self.joined.forget(attempt);
            return None;
        }
        let is_committed = match part {
            Part::Claimed => {
                self.joined.forget(attempt);
                return None;
            }
            Part::Open(lent) => {
                let is_committed = self.commit(lent, lease, done, retention).await;
                if !is_committed {
                    // Whoever gets the row knows how it ended, and frees the key if it was rolled back. When nobody can
                    // be asked, the lease lapses.
                    let _ = self.writes.send(Write::release(lease, None)).await;
                }
                is_committed
            }
            // An earlier call was given up while it committed. This one answers at once, lest it be given up as well.
            Part::Ending => false,
        };
        self.joined.forget(attempt);
        // To those who ask, the attempt is lost, so that its answer does not leave. If it was committed after all, what
        // is recorded is the answer.
        Some(if is_committed { Fenced::Applied } else { Fenced::Lost })
    }

    /// Rolls the attempt's transaction back, if it has one.
    pub(crate) async fn take_back(&self, lease: &Lease) {
        if let Some(part) = self.joined.end(lease.fence.nonce) {
            self.roll_back(part).await;
            self.joined.forget(lease.fence.nonce);
        }
    }

    /// Whether the transaction is known to be committed.
    async fn commit(&self, lent: Arc<Lent>, lease: &Lease, done: &Recorded, retention: Duration) -> bool {
        // Somebody who still writes could write after the end.
        let Ok(lent) = Arc::try_unwrap(lent) else {
            tracing::error!(id = %lease.id, "the work has ended and still holds its transaction; rolled back");
            return false;
        };
        let completion = Write::complete(lease, done, retention);
        let committing = async {
            let writes = [&completion];
            let written = write(lent.client(), &self.link.sql, &writes, self.link.row_wait()).await;
            matches!(written[..], [Ok(Fenced::Applied)]) && lent.client().batch_execute(COMMIT).await.is_ok()
        };
        let is_committed = timeout_at(self.link.deadline(), committing).await == Ok(true);
        if is_committed {
            lent.give_back();
        }
        is_committed
    }

    /// Without a commit there is nothing to be known: a connection that does not answer is closed.
    async fn roll_back(&self, part: Part) {
        let Part::Open(lent) = part else { return };
        let Ok(lent) = Arc::try_unwrap(lent) else { return };
        let rolling = lent.client().batch_execute("ROLLBACK");
        if let Ok(Ok(())) = timeout_at(self.link.deadline(), rolling).await {
            lent.give_back();
        }
    }
}
