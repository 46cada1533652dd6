//! [`OnceIn`]: the claim, the caller's writes and the outcome in one transaction, so that they are committed together or not
//! at all.
//!
//! The order of one call:
//!
//! 1. a **savepoint** in the caller's transaction: any failure rolls back to it;
//! 2. the **claim**, before the work, so that a second caller waits instead of running it too;
//! 3. the **work**, on the same transaction;
//! 4. the **outcome**, and the release of the savepoint. It takes effect when the caller commits.
//!
//! The records are those of the ordinary mode. This module begins and ends no transaction of the caller's, and does not know
//! its driver: see `native.rs` and `sqlx.rs`.

mod error;
mod native;
#[cfg(feature = "sqlx")]
mod sqlx;

use std::time::Duration;

use futures_util::future::join;
use hapax_core::{
    Claim, ClaimRequest, Class, Fenced, Fingerprint, Format, Key, Lease, Nonce, OnLapse, Recorded, Scope,
    ScopedKey, StoreError,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_postgres::types::Type;

pub use self::error::OnceInError;
use crate::batcher::BatchCall;
use crate::claim::claim;
use crate::error::{CallFailure, Effect, Fault};
use crate::executor::{Executor, RowFields};
use crate::store::{PostgresStore, SCOPE_BYTES_MAX};
use crate::write::{Write, complete_one};

/// The default retention of a result.
pub const RETENTION_DEFAULT: Duration = Duration::from_secs(24 * 3600);

/// The default limit for waiting for another transaction that has claimed the key. The wait occupies a connection, so it is
/// short.
pub const WAIT_DEFAULT: Duration = Duration::from_secs(1);

/// The claim is invisible until it is completed, unless the work itself ends the transaction. Then the record becomes
/// uncertain after this lease.
const LEASE: Duration = Duration::from_secs(60);

/// The retention of such a record.
const UNCERTAIN_RETENTION: Duration = Duration::from_secs(30 * 24 * 3600);

/// The longest `retry_after`.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(1);

const READ_LOCK_TIMEOUT: &str = "SELECT current_setting('lock_timeout') AS setting";
const SET_LOCK_TIMEOUT: &str = "SELECT set_config('lock_timeout', $1, true)";

/// An operation that runs once in the caller's transaction, made by [`PostgresStore::once_in`].
#[must_use = "nothing happens until `run` is called and awaited"]
#[derive(Debug)]
pub struct OnceIn<'t, X> {
    tx: &'t mut X,
    operation: Operation<'t>,
}

/// A result, and whether it was replayed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Done<T> {
    /// The result.
    pub value: T,
    /// Whether it came from an earlier, committed transaction. Otherwise it takes effect when this one commits.
    pub replayed: bool,
}

impl<'t, X> OnceIn<'t, X> {
    pub(crate) fn new(store: &'t PostgresStore, tx: &'t mut X, scope: Scope, key: &Key) -> Self {
        let ask = ClaimRequest {
            key: ScopedKey::new(scope, key),
            fingerprint: Fingerprint::empty(),
            nonce: Nonce::random(),
            lease: LEASE,
            on_lapse: OnLapse::Uncertain,
            attempts_max: 1,
            uncertain_retention: UNCERTAIN_RETENTION,
        };
        let operation =
            Operation { store, ask, unreadable: None, retention: RETENTION_DEFAULT, wait: WAIT_DEFAULT };
        Self { tx, operation }
    }

    /// The input. The same key with another input is refused as a mismatch.
    pub fn input(mut self, input: &(impl Serialize + ?Sized)) -> Self {
        match serde_json::to_vec(input) {
            // The same fingerprint as in the ordinary mode, so that a key may move from one mode to the other.
            Ok(json) => self.operation.ask.fingerprint = Fingerprint::builder().json("input", &json).build(),
            Err(error) => self.operation.unreadable = Some(error),
        }
        self
    }

    /// How long the result is replayed, from its completion. A day by default.
    pub fn retention(mut self, retention: Duration) -> Self {
        self.operation.retention = retention;
        self
    }

    /// How long to wait for another open transaction that has claimed the key; a second by default, and at least a
    /// millisecond.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.operation.wait = wait;
        self
    }
}

/// The operation, without the transaction.
#[derive(Debug)]
struct Operation<'t> {
    store: &'t PostgresStore,
    ask: ClaimRequest,
    unreadable: Option<serde_json::Error>,
    retention: Duration,
    wait: Duration,
}

/// A claim, and the transaction's previous lock timeout.
struct Claimed {
    lease: Lease,
    lock_timeout: String,
}

/// Why the work does not run.
enum NotRun {
    Replay(Recorded),
    Refused(Claim),
    Fault(Fault),
}

impl Operation<'_> {
    /// Refuses invalid input before anything is sent.
    fn check<E>(&mut self) -> Result<(), OnceInError<E>> {
        if let Some(error) = self.unreadable.take() {
            return Err(OnceInError::Input(error));
        }
        if BatchCall::bytes(&self.ask) > SCOPE_BYTES_MAX {
            return Err(OnceInError::Store(CallFailure::ScopeTooLarge.error("claim", Effect::Read)));
        }
        Ok(())
    }

    /// Claims the key. On failure, the transaction must be rolled back to its savepoint.
    async fn claim<C: Executor>(&self, connection: &C) -> Result<Claimed, NotRun> {
        let asks = [&self.ask];
        let sql = &self.store.pool.sql;
        let (read, claims) = join(lock_timeout(connection), claim(connection, sql, &asks, self.wait)).await;
        match claims.into_iter().next() {
            Some(Ok(Claim::Acquired(lease))) => {
                let lock_timeout = read.map_err(|error| NotRun::Fault(C::classify_error(&error)))?;
                // The claim changes the lock timeout, which must not affect the work.
                restore(connection, &lock_timeout)
                    .await
                    .map_err(|error| NotRun::Fault(C::classify_error(&error)))?;
                Ok(Claimed { lease, lock_timeout })
            }
            Some(Ok(Claim::Replay { recorded, .. })) => Err(NotRun::Replay(recorded)),
            Some(Ok(refused)) => Err(NotRun::Refused(refused)),
            Some(Err(fault)) => Err(NotRun::Fault(fault)),
            None => Err(NotRun::Refused(Claim::Busy { lease_left: Duration::ZERO })),
        }
    }

    /// Records the outcome of the work that this call ran.
    async fn complete<C: Executor, T: Serialize, E>(
        &self,
        connection: &C,
        claimed: &Claimed,
        value: &T,
    ) -> Result<(), OnceInError<E>> {
        let json = serde_json::to_vec(value).map_err(OnceInError::Output)?;
        let recorded = Recorded::new(Class::Success, Format::FUNCTION, json);
        self.store.check("complete", Some(&recorded))?;
        let completion = Write::complete(&claimed.lease, &recorded, self.retention);
        let (written, restored) = join(
            complete_one(connection, &self.store.pool.sql, &completion, self.wait),
            restore(connection, &claimed.lock_timeout),
        )
        .await;
        match written {
            Ok(Fenced::Applied) => restored.map_err(|error| fault("complete", C::classify_error(&error))),
            Err(failed) => Err(fault("complete", failed)),
            // The claim is gone or replaced, although it was not visible to others.
            Ok(Fenced::Lost) => Err(OnceInError::Ended { id: self.ask.key.id }),
        }
    }

    /// The caller's answer when the work did not run.
    fn answer<T: DeserializeOwned, E>(&self, unrun: NotRun) -> Result<Done<T>, OnceInError<E>> {
        let id = self.ask.key.id;
        match unrun {
            NotRun::Replay(recorded) => match (recorded.format, recorded.class) {
                (Format::FUNCTION, Class::Success) => serde_json::from_slice(&recorded.payload)
                    .map(|value| Done { value, replayed: true })
                    .map_err(|error| OnceInError::ResultUnavailable { source: Some(error) }),
                (_, Class::Error) => Err(OnceInError::PreviouslyFailed { id }),
                // Not kept, or in another format.
                _ => Err(OnceInError::ResultUnavailable { source: None }),
            },
            NotRun::Refused(Claim::Mismatch) => Err(OnceInError::Mismatch),
            NotRun::Refused(Claim::Uncertain { reason, .. }) => Err(OnceInError::Uncertain { id, reason }),
            NotRun::Refused(Claim::Busy { lease_left }) => {
                Err(OnceInError::InProgress { retry_after: lease_left.min(RETRY_AFTER_MAX) })
            }
            NotRun::Refused(_) => Err(OnceInError::Unreadable { id }),
            NotRun::Fault(failed) if failed.is_wait_over() => {
                Err(OnceInError::InProgress { retry_after: RETRY_AFTER_MAX })
            }
            NotRun::Fault(failed) => Err(fault("claim", failed)),
        }
    }
}

/// Maps a failed statement in the caller's transaction. Nothing of it is committed.
fn fault<E>(op: &'static str, fault: Fault) -> OnceInError<E> {
    let is_conflict = matches!(fault, Fault::Contended(_));
    let error: StoreError = fault.error(op, Effect::Read);
    if is_conflict { OnceInError::Conflict(error) } else { OnceInError::Store(error) }
}

/// The transaction's lock timeout.
async fn lock_timeout<C: Executor>(connection: &C) -> Result<String, C::Error> {
    let rows = connection.fetch_rows(READ_LOCK_TIMEOUT, &[]).await?;
    rows.first().map_or_else(|| Ok(String::new()), |row| row.field("setting"))
}

async fn restore<C: Executor>(connection: &C, lock_timeout: &str) -> Result<(), C::Error> {
    connection.fetch_rows(SET_LOCK_TIMEOUT, &[(&lock_timeout, Type::TEXT)]).await.map(drop)
}
