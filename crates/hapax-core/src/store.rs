//! The [`Store`] trait, its requests and its answers.
//!
//! # The contract
//!
//! 1. **One record per key, one atomic step per call.** A call reads the record, decides as
//!    [`transition`](crate::transition) does and writes, isolated from every other call.
//! 2. **Durable before it is acknowledged**, as far as [`Health::promise`] says.
//! 3. **Every write is fenced.** A call whose nonce the record no longer holds changes nothing and answers
//!    [`Fenced::Lost`].
//! 4. **The store's clock decides** whether a lease has lapsed or a record has expired; callers never compare times.
//! 5. **Expected outcomes are `Ok`.** `Err` means that the call failed or, with
//!    [`StoreErrorKind::Unknown`](crate::StoreErrorKind::Unknown), that it may or may not have been applied.
//! 6. **Calls are idempotent by nonce.** A repeated call with the same nonce returns its own earlier result, so a lost
//!    answer is resolved by a retry, never by a guess.
//! 7. **Cancellation-safe.** Dropping the future leaves the call applied or not applied, never half applied, and affects
//!    no other call.
//! 8. **An unreadable record is present**: answered as [`Claim::Unreadable`] and [`Lookup::Unreadable`], never as
//!    absent.
//!
//! The suite in `hapax-testkit` checks all of this against any store.

mod shared;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use crate::caching::Caching;
use crate::error::StoreError;
use crate::fingerprint::Fingerprint;
use crate::key::{RecordId, ScopedKey};
use crate::record::{Fence, Nonce, Reason, Record, Recorded, State, Timestamp};

/// A boxed future, so that [`Store`] can be a trait object.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The retention of a tombstone: long enough to recognise a delayed duplicate of the released claim, and to show the
/// failed attempt to an operator.
pub const TOMBSTONE_RETENTION: Duration = Duration::from_secs(600);

/// A store of records. See the [module](self) for the contract.
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// Claims a key: creates its record in progress, or answers why it cannot.
    ///
    /// *Atomic*: decides and writes in one step. *Dropped*: the claim may have been applied; a caller that abandons it
    /// sends [`release`](Self::release) with the same nonce. *Lost answer*: the same request with the same nonce
    /// answers [`Claim::Acquired`] again with the same attempt number. Rules, F-01, D-05.
    fn claim<'a>(&'a self, ask: &'a ClaimRequest) -> BoxFuture<'a, Result<Claim, StoreError>>;

    /// Returns the outcome that a claim of this request would replay now, if the store has it in memory. `None` proves
    /// nothing: the caller must claim.
    ///
    /// Saves retries a claim. A store without such a memory keeps the default.
    fn recall(&self, _id: &RecordId, _fingerprint: &Fingerprint) -> Option<Recorded> {
        None
    }

    /// Extends a claim's lease to its full length from now.
    ///
    /// *Atomic*. *Dropped*: extended or not. *Lost answer*: repeating extends again. A lapsed claim that was not taken
    /// over is extended too. A record already stored as uncertain answers [`Fenced::Lost`], because an operator may be
    /// settling it; its owner may still complete it. Rules.
    fn renew<'a>(&'a self, lease: &'a Lease) -> BoxFuture<'a, Result<Fenced, StoreError>>;

    /// Pins the outcome of the attempt that holds the record; retries are answered with it for `retention` from now.
    ///
    /// *Atomic*. *Dropped*: pinned or not. *Lost answer*: repeating answers [`Fenced::Applied`] and changes
    /// nothing. A late completion by the attempt that the record still holds is accepted, also after its lease
    /// lapsed. After an `Err` the outcome may be recorded or not. Rules X-02, D-01, D-04.
    fn complete<'a>(
        &'a self,
        lease: &'a Lease,
        done: &'a Recorded,
        retention: Duration,
    ) -> BoxFuture<'a, Result<Fenced, StoreError>>;

    /// Frees the key for a new run and leaves a tombstone, with the attempt's answer if there was one.
    ///
    /// *Atomic*. *Dropped*: released or not. *Lost answer*: repeating answers [`Fenced::Applied`]. Only for an
    /// attempt that provably had no effect, or that declared itself retryable. Rule X-09.
    fn release<'a>(
        &'a self,
        lease: &'a Lease,
        answered: Option<&'a Recorded>,
    ) -> BoxFuture<'a, Result<Fenced, StoreError>>;

    /// Makes the record uncertain without waiting for the lease to lapse: its owner reports that the outcome is unknown.
    ///
    /// *Atomic*. *Dropped*: done or not, and the lease lapses anyway. *Lost answer*: repeating answers
    /// [`Fenced::Applied`]. Rule X-07.
    fn abandon<'a>(&'a self, lease: &'a Lease, reason: Reason) -> BoxFuture<'a, Result<Fenced, StoreError>>;

    /// Decides an uncertain record: applied, with this outcome, or not applied.
    ///
    /// *Atomic*: conditional on [`Settlement::attempt`]. The settlement's own nonce replaces the
    /// attempt's, so a late owner is fenced out. *Lost answer*: repeating answers
    /// [`Settled::Applied`]. Rule D-07.
    fn settle<'a>(
        &'a self,
        id: &'a RecordId,
        settlement: &'a Settlement,
    ) -> BoxFuture<'a, Result<Settled, StoreError>>;

    /// Reads one record, expired or not. Never execute anything because of a read: only a claim permits that.
    fn get<'a>(&'a self, id: &'a RecordId) -> BoxFuture<'a, Result<Lookup, StoreError>>;

    /// Lists records, newest first, one page per call.
    fn list<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<Page, StoreError>>;

    /// Removes a record that still holds `nonce`. A claim in progress is refused: its owner would keep running while
    /// the key is free. Rule D-07.
    fn delete<'a>(&'a self, id: &'a RecordId, nonce: Nonce) -> BoxFuture<'a, Result<Deleted, StoreError>>;

    /// Removes at most `batch_max` records that are due, re-checking each in the step that removes it.
    fn sweep(&self, batch_max: usize) -> BoxFuture<'_, Result<Swept, StoreError>>;

    /// Counts records. Slow on a large store.
    fn stats(&self) -> BoxFuture<'_, Result<Stats, StoreError>>;

    /// Checks that the store can take a claim now, and reports its promise.
    fn health(&self) -> BoxFuture<'_, Result<Health, StoreError>>;

    /// The size limit of an outcome, in bytes as [`Recorded::len`] counts them: a larger one is refused as
    /// [`TooLarge`](crate::StoreErrorKind::TooLarge). Constant for the lifetime of the store.
    ///
    /// The engine reads it before it runs an operation, so that an oversized outcome is recorded as not kept. A store
    /// without a limit keeps the default; one in front of another store forwards the call.
    fn outcome_bytes_max(&self) -> usize {
        usize::MAX
    }

    /// How long an in-process cache in front of this store may keep finished records. Read once, when the cache is
    /// created.
    ///
    /// A store that other processes may change keeps the default. One that returns [`Caching::Owned`] counts every
    /// [`delete`](Self::delete) that removes a record.
    fn caching(&self) -> Caching {
        Caching::default()
    }

    /// A future that completes when the record may have changed, if the store can push notifications.
    ///
    /// A hint only: it may be spurious, late or lost, so callers poll as well.
    fn watch(&self, id: &RecordId) -> Option<BoxFuture<'static, ()>> {
        let _ = id;
        None
    }
}

/// The handling of a claim whose lease has lapsed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum OnLapse {
    /// At most once: the record becomes uncertain and nothing runs until it is settled.
    #[default]
    Uncertain,
    /// At least once: a later claim takes over and runs again.
    Rerun,
}

/// A request to claim a key.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ClaimRequest {
    /// The operation.
    pub key: ScopedKey,
    /// The fingerprint of the request.
    pub fingerprint: Fingerprint,
    /// Fresh for every attempt; the same when the call is repeated after a lost answer.
    pub nonce: Nonce,
    /// The length of the lease.
    pub lease: Duration,
    /// The handling of a lapsed claim.
    pub on_lapse: OnLapse,
    /// The maximum number of consecutive attempts that lapse; the record then becomes uncertain instead of being taken
    /// over. Attempts that released the key do not count.
    pub attempts_max: u32,
    /// How long an unfinished record is kept before a sweep drops it.
    pub uncertain_retention: Duration,
}

/// The right to work on a key, as long as the record holds its fence.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Lease {
    /// The record.
    pub id: RecordId,
    /// The attempt.
    pub fence: Fence,
    /// How long the claim is valid without renewal.
    pub length: Duration,
}

/// Answer to a claim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Claim {
    /// The caller owns the key: run the operation.
    Acquired(Lease),
    /// Another attempt is in progress.
    Busy {
        /// The remaining lease of that attempt, unless it is renewed.
        lease_left: Duration,
    },
    /// The key was used with another fingerprint.
    Mismatch,
    /// The operation is finished, with this outcome.
    Replay {
        /// The outcome.
        recorded: Recorded,
        /// The remaining retention.
        remaining: Duration,
    },
    /// It is unknown whether the operation happened.
    Uncertain {
        /// The attempt in question; a settlement names it.
        fence: Fence,
        /// Why its outcome is unknown.
        reason: Reason,
    },
    /// There is a record that cannot be read; treated like uncertain.
    Unreadable,
}

/// Answer to a fenced write.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fenced {
    /// Applied, now or by an earlier delivery of the same call.
    Applied,
    /// Nothing changed: the record belongs to another attempt, is final, or is gone.
    Lost,
}

/// A decision about an uncertain record.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Settlement {
    /// The attempt to settle; refused when the record holds another one.
    pub attempt: Nonce,
    /// Fresh for every settlement; the same when the call is repeated after a lost answer.
    pub nonce: Nonce,
    /// The decision.
    pub verdict: Verdict,
}

impl Settlement {
    /// A settlement of `attempt` with a fresh nonce.
    pub fn new(attempt: Nonce, verdict: Verdict) -> Self {
        Self { attempt, nonce: Nonce::random(), verdict }
    }

    /// Replaces the settlement's own nonce.
    #[must_use]
    pub fn with_nonce(mut self, nonce: Nonce) -> Self {
        self.nonce = nonce;
        self
    }
}

/// Whether an uncertain operation turned out to have happened.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Verdict {
    /// It happened, with this outcome.
    Applied {
        /// The outcome that retries are answered with.
        recorded: Recorded,
        /// The retention of the outcome.
        retention: Duration,
    },
    /// It did not happen; the key is free.
    NotApplied,
}

/// Answer to a settlement.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Settled {
    /// Applied, now or by an earlier delivery of the same settlement.
    Applied,
    /// Nothing to settle: the record is in this state.
    NotUncertain(State),
    /// The record belongs to another attempt.
    Changed,
    /// There is no record.
    Absent,
}

/// Answer to a deletion.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Deleted {
    /// Removed.
    Applied,
    /// There is no record.
    Absent,
    /// The record belongs to another attempt.
    Changed,
    /// Refused: the claim is in progress.
    InProgress,
}

/// Answer to a read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Lookup {
    /// There is no record.
    Absent,
    /// There is a record.
    Found {
        /// The record.
        record: Box<Record>,
        /// The store's clock at the read, to compare the record's times with.
        now: Timestamp,
    },
    /// There is a record that cannot be read.
    Unreadable {
        /// The cause; never the record's content.
        why: String,
    },
}

/// The filter of a listing. The default selects all records, 100 per page.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Query {
    /// Only these states, as of the time of reading; empty means all.
    pub states: Vec<State>,
    /// Only this namespace.
    pub namespace: Option<String>,
    /// Only operations with this prefix.
    pub operation_prefix: Option<String>,
    /// Only records whose id starts with these hexadecimal digits. The first sixteen are the key's hash.
    pub id_prefix: Option<String>,
    /// Only records whose status is at least this old.
    pub age_min: Option<Duration>,
    /// Only records whose status is at most this old.
    pub age_max: Option<Duration>,
    /// The maximum number of records per page.
    pub limit: usize,
    /// The end of the previous page: [`Page::next`].
    pub cursor: Option<String>,
}

impl Default for Query {
    fn default() -> Self {
        Self {
            states: Vec::new(),
            namespace: None,
            operation_prefix: None,
            id_prefix: None,
            age_min: None,
            age_max: None,
            limit: 100,
            cursor: None,
        }
    }
}

impl Query {
    /// Whether `record` matches the filter, ignoring the limit and the cursor.
    pub fn admits(&self, record: &Record, now: Timestamp) -> bool {
        let scope = &record.key.scope;
        let age = now.since(record.updated_at);
        (self.states.is_empty() || self.states.contains(&record.state_at(now)))
            && self.namespace.as_deref().is_none_or(|wanted| wanted == scope.namespace())
            && self.operation_prefix.as_deref().is_none_or(|prefix| scope.operation().starts_with(prefix))
            && self.id_prefix.as_deref().is_none_or(|prefix| record.key.id.to_string().starts_with(prefix))
            && self.age_min.is_none_or(|min| age >= min)
            && self.age_max.is_none_or(|max| age <= max)
    }
}

/// One page of a listing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Page {
    /// The records, newest first.
    pub records: Vec<Record>,
    /// Unreadable records in the range of this page; never omitted silently.
    pub unreadable: Vec<RecordId>,
    /// The cursor of the next page; none when this is the last.
    pub next: Option<String>,
    /// The store's clock at the read.
    pub now: Timestamp,
}

impl Page {
    /// An empty last page, read at `now`.
    pub const fn new(now: Timestamp) -> Self {
        Self { records: Vec::new(), unreadable: Vec::new(), next: None, now }
    }
}

/// The result of a sweep.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Swept {
    /// Finished records and tombstones whose retention was over.
    pub expired: u64,
    /// Unfinished records dropped after their `uncertain_retention`. Worth an alert.
    pub dropped: u64,
    /// Whether more records are due than fit in the batch.
    pub more: bool,
}

/// Record counts by state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Claims whose lease has not lapsed at the time of reading.
    pub in_progress: u64,
    /// Pinned successes.
    pub completed: u64,
    /// Pinned errors.
    pub failed: u64,
    /// Uncertain records, lapsed claims included.
    pub uncertain: u64,
    /// Tombstones.
    pub released: u64,
    /// The store's size in bytes, an estimate.
    pub bytes: u64,
}

impl Stats {
    /// Adds one record in `state`.
    pub fn count(&mut self, state: State) {
        match state {
            State::InProgress => self.in_progress += 1,
            State::Completed => self.completed += 1,
            State::Failed => self.failed += 1,
            State::Uncertain => self.uncertain += 1,
            State::Released => self.released += 1,
        }
    }

    /// The total number of records.
    pub fn records(&self) -> u64 {
        self.in_progress + self.completed + self.failed + self.uncertain + self.released
    }
}

/// The guarantee that a store gives in its present configuration.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Promise {
    /// De-duplication inside one living process; a restart forgets everything.
    OneProcess,
    /// Best effort: acknowledged claims can be lost when the store fails.
    BestEffort,
    /// At most once; survives the death of any process, and power loss when the disk honours fsync.
    AtMostOnce,
}

impl Promise {
    /// The promise in words, for documents and health pages.
    pub const fn words(self) -> &'static str {
        match self {
            Self::OneProcess => "de-duplication inside one living process; a restart forgets everything",
            Self::BestEffort => "best effort; acknowledged claims can be lost when the store fails",
            Self::AtMostOnce => "at most once; a crash leaves the key uncertain for you to settle",
        }
    }
}

/// The health of a store.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Health {
    /// The kind of store: `memory`, `file`, …
    pub store: &'static str,
    /// Computed from the server's settings in force.
    pub promise: Promise,
    /// Settings or conditions that need an operator's attention.
    pub warnings: Vec<String>,
}

impl Health {
    /// The health of a store of this kind.
    pub const fn new(store: &'static str, promise: Promise, warnings: Vec<String>) -> Self {
        Self { store, promise, warnings }
    }
}
