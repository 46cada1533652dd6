//! [`OnceIn`]: the claim, the caller's own writes and the outcome in one transaction, so that they happen together or not
//! at all.
//!
//! The order of one call:
//!
//! 1. a **savepoint** in the caller's transaction: whatever goes wrong in here ends there;
//! 2. the **claim**, before the work, so that a second caller waits instead of running as well;
//! 3. the **work**, on the same transaction;
//! 4. the **outcome**, and the savepoint is given up. All of it holds once the caller commits.
//!
//! The statements are those of the ordinary mode. This file begins and ends no transaction of the caller's, and it does
//! not know which driver that is: see `native.rs` and `sqlx.rs`.

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
use crate::claim::claim;
use crate::connection::{Connection, Fields};
use crate::error::{Effect, Fault, Refusal};
use crate::lane::Work;
use crate::store::{PostgresStore, SCOPE_BYTES_MAX};
use crate::write::{Write, write};

/// How long a result answers retries, unless told otherwise.
pub const RETENTION_DEFAULT: Duration = Duration::from_secs(24 * 3600);

/// How long a call waits for another transaction that has claimed the key, unless told otherwise. It keeps a connection
/// meanwhile, so it is short.
pub const WAIT_DEFAULT: Duration = Duration::from_secs(1);

/// Nobody sees the claim before it is complete, unless the work itself ends the transaction. Then this is when the
/// record becomes uncertain.
const LEASE: Duration = Duration::from_secs(60);

/// How long such a record is kept for people.
const UNCERTAIN_RETENTION: Duration = Duration::from_secs(30 * 24 * 3600);

/// The longest pause that somebody who comes too early is advised to make.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(1);

const READ_LOCK_TIMEOUT: &str = "SELECT current_setting('lock_timeout') AS setting";
const SET_LOCK_TIMEOUT: &str = "SELECT set_config('lock_timeout', $1, true)";

/// One operation to be run once in a transaction of the caller's, made by [`PostgresStore::once_in`].
#[must_use = "nothing happens until `run` is called and awaited"]
#[derive(Debug)]
pub struct OnceIn<'t, X> {
    tx: &'t mut X,
    asked: Asked<'t>,
}

/// A result, and where it came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Done<T> {
    /// The one result.
    pub value: T,
    /// Whether it came from an earlier transaction, which is committed. Otherwise it holds once this one is.
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
        let asked = Asked { store, ask, unreadable: None, retention: RETENTION_DEFAULT, wait: WAIT_DEFAULT };
        Self { tx, asked }
    }

    /// What is asked for. The same key with another input is a mistake and is refused as such.
    pub fn input(mut self, input: &(impl Serialize + ?Sized)) -> Self {
        match serde_json::to_vec(input) {
            // As the ordinary mode makes it, so that a key may change from one mode to the other.
            Ok(json) => self.asked.ask.fingerprint = Fingerprint::builder().json("input", &json).build(),
            Err(error) => self.asked.unreadable = Some(error),
        }
        self
    }

    /// How long the result answers retries, from when it is recorded. A day by default.
    pub fn retention(mut self, retention: Duration) -> Self {
        self.asked.retention = retention;
        self
    }

    /// How long to wait for another transaction that has claimed the key and is still open; a second by default, and a
    /// millisecond at least.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.asked.wait = wait;
        self
    }
}

/// What is asked for, without the transaction.
#[derive(Debug)]
struct Asked<'t> {
    store: &'t PostgresStore,
    ask: ClaimRequest,
    unreadable: Option<serde_json::Error>,
    retention: Duration,
    wait: Duration,
}

/// The right to run the work, and how long statements waited for rows before.
struct Claimed {
    lease: Lease,
    lock_timeout: String,
}

/// Why the work does not run.
enum Unrun {
    Known(Recorded),
    Refused(Claim),
    Fault(Fault),
}

impl Asked<'_> {
    /// Refuses what can be refused before anything is sent.
    fn check<E>(&mut self) -> Result<(), OnceInError<E>> {
        if let Some(error) = self.unreadable.take() {
            return Err(OnceInError::Input(error));
        }
        if Work::bytes(&self.ask) > SCOPE_BYTES_MAX {
            return Err(OnceInError::Store(Refusal::ScopeTooLarge.error("claim", Effect::Read)));
        }
        Ok(())
    }

    /// Claims the key. When that fails, the transaction must go back to its savepoint.
    async fn claim<C: Connection>(&self, connection: &C) -> Result<Claimed, Unrun> {
        let asks = [&self.ask];
        let sql = &self.store.link.sql;
        let (read, claims) = join(lock_timeout(connection), claim(connection, sql, &asks, self.wait)).await;
        match claims.into_iter().next() {
            Some(Ok(Claim::Acquired(lease))) => {
                let lock_timeout = read.map_err(|error| Unrun::Fault(C::fault(&error)))?;
                // A claim leaves its own behind, and the work is not ours.
                restore(connection, &lock_timeout).await.map_err(|error| Unrun::Fault(C::fault(&error)))?;
                Ok(Claimed { lease, lock_timeout })
            }
            Some(Ok(Claim::Replay { recorded, .. })) => Err(Unrun::Known(recorded)),
            Some(Ok(refused)) => Err(Unrun::Refused(refused)),
            Some(Err(fault)) => Err(Unrun::Fault(fault)),
            None => Err(Unrun::Refused(Claim::Busy { lease_left: Duration::ZERO })),
        }
    }

    /// Records the outcome of the work that this call ran.
    async fn complete<C: Connection, T: Serialize, E>(
        &self,
        connection: &C,
        claimed: &Claimed,
        value: &T,
    ) -> Result<(), OnceInError<E>> {
        let json = serde_json::to_vec(value).map_err(OnceInError::Output)?;
        let recorded = Recorded::new(Class::Success, Format::FUNCTION, json);
        self.store.check("complete", Some(&recorded))?;
        let completion = Write::complete(&claimed.lease, &recorded, self.retention);
        let writes = [&completion];
        let (written, restored) = join(
            write(connection, &self.store.link.sql, &writes, self.wait),
            restore(connection, &claimed.lock_timeout),
        )
        .await;
        match written.into_iter().next() {
            Some(Ok(Fenced::Applied)) => restored.map_err(|error| fault("complete", C::fault(&error))),
            Some(Err(failed)) => Err(fault("complete", failed)),
            // The claim is gone or another's, though nobody else could see it.
            Some(Ok(Fenced::Lost)) | None => Err(OnceInError::Ended { id: self.ask.key.id }),
        }
    }

    /// What the caller is told when the work did not run.
    fn answer<T: DeserializeOwned, E>(&self, unrun: Unrun) -> Result<Done<T>, OnceInError<E>> {
        let id = self.ask.key.id;
        match unrun {
            Unrun::Known(recorded) => match (recorded.format, recorded.class) {
                (Format::FUNCTION, Class::Success) => serde_json::from_slice(&recorded.payload)
                    .map(|value| Done { value, replayed: true })
                    .map_err(|error| OnceInError::ResultUnavailable { source: Some(error) }),
                (_, Class::Error) => Err(OnceInError::PreviouslyFailed { id }),
                // Not kept, or written by somebody whose bytes mean something else.
                _ => Err(OnceInError::ResultUnavailable { source: None }),
            },
            Unrun::Refused(Claim::Mismatch) => Err(OnceInError::Mismatch),
            Unrun::Refused(Claim::Uncertain { reason, .. }) => Err(OnceInError::Uncertain { id, reason }),
            Unrun::Refused(Claim::Busy { lease_left }) => {
                Err(OnceInError::InProgress { retry_after: lease_left.min(RETRY_AFTER_MAX) })
            }
            Unrun::Refused(_) => Err(OnceInError::Unreadable { id }),
            Unrun::Fault(failed) if failed.is_wait_over() => {
                Err(OnceInError::InProgress { retry_after: RETRY_AFTER_MAX })
            }
            Unrun::Fault(failed) => Err(fault("claim", failed)),
        }
    }
}

/// What a failed statement means to the caller, whose transaction it was in. Nothing of it is committed.
fn fault<E>(op: &'static str, fault: Fault) -> OnceInError<E> {
    let is_conflict = matches!(fault, Fault::Contended(_));
    let error: StoreError = fault.error(op, Effect::Read);
    if is_conflict { OnceInError::Conflict(error) } else { OnceInError::Store(error) }
}

/// How long statements of this transaction wait for rows.
async fn lock_timeout<C: Connection>(connection: &C) -> Result<String, C::Error> {
    let rows = connection.ask(READ_LOCK_TIMEOUT, &[]).await?;
    rows.first().map_or_else(|| Ok(String::new()), |row| row.field("setting"))
}

async fn restore<C: Connection>(connection: &C, lock_timeout: &str) -> Result<(), C::Error> {
    connection.ask(SET_LOCK_TIMEOUT, &[(&lock_timeout, Type::TEXT)]).await.map(drop)
}
