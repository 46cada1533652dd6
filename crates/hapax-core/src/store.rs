//! The contract every store keeps: [`Store`], its questions and its answers.
//!
//! # The contract
//!
//! 1. **One record per key, one atomic step per call.** A call reads the record, decides as
//!    [`transition`](crate::transition) does and writes, as if nothing else happened meanwhile.
//! 2. **Durable before it answers**, as far as [`Health::promise`] says.
//! 3. **Every write names its attempt.** A call whose nonce the record no longer holds changes nothing and
//!    answers [`Fenced::Lost`].
//! 4. **The store's clock decides** whether a lease has lapsed or a record has expired; callers compare nothing.
//! 5. **Expected outcomes are `Ok`.** `Err` means "I cannot" or, with
//!    [`StoreErrorKind::Unknown`](crate::StoreErrorKind::Unknown), "I do not know whether I did".
//! 6. **Repeating a call with the same nonce returns its own earlier result**, so that a lost answer is settled
//!    by asking again, never by guessing.
//! 7. **A dropped future** leaves the call applied or not applied, never half applied, and harms no other call.
//! 8. **What cannot be read is present**: answered as [`Claim::Unreadable`] and [`Lookup::Unreadable`], never as
//!    absent.
//!
//! `hapax-testkit` holds the suite that checks all of this against any store.

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

/// How long the tombstone of a released attempt stays: long enough to recognise a delayed duplicate of the
/// released claim and to show the failed attempt to people.
pub const TOMBSTONE_RETENTION: Duration = Duration::from_secs(600);

/// Keeps records. See the [module](self) for the contract.
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// Claims a key: creates its record in progress, or tells why that cannot be.
    ///
    /// *Atomic*: decides and writes in one step. *Dropped*: the claim may stand; whoever gave it up sends
    /// [`release`](Self::release) with the same nonce. *Lost answer*: the same request with the same nonce
    /// answers [`Claim::Acquired`] again with the same attempt number. Rules, F-01, D-05.
    fn claim<'a>(&'a self, ask: &'a ClaimRequest) -> BoxFuture<'a, Result<Claim, StoreError>>;

    /// What a claim of this request would be answered with now, where the store knows without waiting that the
    /// answer is recorded. `None` says nothing: a claim must be made.
    ///
    /// It spares retries a claim. A store that has nothing in memory leaves it as it is here.
    fn recall(&self, _id: &RecordId, _fingerprint: &Fingerprint) -> Option<Recorded> {
        None
    }

    /// Extends a claim's lease to its full length from now.
    ///
    /// *Atomic*. *Dropped*: extended or not. *Lost answer*: repeating extends again. A lapsed claim that nobody
    /// else has taken is extended too. A record already written down as uncertain answers [`Fenced::Lost`]: somebody
    /// may be deciding about it. Its owner may still complete it. Rules.
    fn renew<'a>(&'a self, lease: &'a Lease) -> BoxFuture<'a, Result<Fenced, StoreError>>;

    /// Pins the outcome of the attempt that holds the record; it answers retries for `retention` from now.
    ///
    /// *Atomic*. *Dropped*: pinned or not. *Lost answer*: repeating answers [`Fenced::Applied`] and changes
    /// nothing. A late completion by the attempt that the record still holds is welcome, also after its lease
    /// lapsed. After an `Err` the outcome may be recorded or not. Rules X-02, D-01, D-04.
    fn complete<'a>(
        &'a self,
        lease: &'a Lease,
        done: &'a Recorded,
        retention: Duration,
    ) -> BoxFuture<'a, Result<Fenced, StoreError>>;

    /// Frees the key for a new run and leaves a tombstone with what the attempt answered, if it did.
    ///
    /// *Atomic*. *Dropped*: released or not. *Lost answer*: repeating answers [`Fenced::Applied`]. Only for an
    /// attempt that provably did nothing, or that declared itself retryable. Rule X-09.
    fn release<'a>(
        &'a self,
        lease: &'a Lease,
        answered: Option<&'a Recorded>,
    ) -> BoxFuture<'a, Result<Fenced, StoreError>>;

    /// Makes the record uncertain at once: its owner says that nobody will know, without waiting for the lease.
    ///
    /// *Atomic*. *Dropped*: done or not, and the lease lapses anyway. *Lost answer*: repeating answers
    /// [`Fenced::Applied`]. Rule X-07.
    fn abandon<'a>(&'a self, lease: &'a Lease, reason: Reason) -> BoxFuture<'a, Result<Fenced, StoreError>>;

    /// Decides an uncertain record: applied, with this outcome, or not applied.
    ///
    /// *Atomic*: conditional on the attempt that was looked at. The settlement's own nonce replaces the
    /// attempt's, so a late owner finds itself fenced out. *Lost answer*: repeating answers
    /// [`Settled::Applied`]. Rule D-07.
    fn settle<'a>(
        &'a self,
        id: &'a RecordId,
        settlement: &'a Settlement,
    ) -> BoxFuture<'a, Result<Settled, StoreError>>;

    /// Reads one record, expired or not. Never a ground for executing anything: only a claim is.
    fn get<'a>(&'a self, id: &'a RecordId) -> BoxFuture<'a, Result<Lookup, StoreError>>;

    /// Lists records, newest first, page by page.
    fn list<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<Page, StoreError>>;

    /// Removes a record that still holds `nonce`. A claim that is in progress is refused: its owner would run on
    /// while the key looks fresh. Rule D-07.
    fn delete<'a>(&'a self, id: &'a RecordId, nonce: Nonce) -> BoxFuture<'a, Result<Deleted, StoreError>>;

    /// Removes at most `batch_max` records that are due, each checked again in the step that removes it.
    fn sweep(&self, batch_max: usize) -> BoxFuture<'_, Result<Swept, StoreError>>;

    /// Counts records. May take a while on a large store.
    fn stats(&self) -> BoxFuture<'_, Result<Stats, StoreError>>;

    /// Whether the store can take a claim now, and what it promises.
    fn health(&self) -> BoxFuture<'_, Result<Health, StoreError>>;

    /// The largest outcome that is taken, in bytes as [`Recorded::len`] counts them: a larger one is refused as
    /// [`TooLarge`](crate::StoreErrorKind::TooLarge). It is the same for as long as the store lives.
    ///
    /// Whoever runs operations asks before it runs them, so that what is too large is recorded as not kept. A store that
    /// takes any outcome leaves it as it is here; one in front of another store asks that one.
    fn outcome_bytes_max(&self) -> usize {
        usize::MAX
    }

    /// How long finished records may be answered from memory in front of this store. It is asked once, when a cache is
    /// made.
    ///
    /// A store that other processes may change leaves it as it is here. One that answers [`Caching::Owned`] counts every
    /// [`delete`](Self::delete) that removes a record.
    fn caching(&self) -> Caching {
        Caching::default()
    }

    /// A future that ends when the record may have changed, where the store can push such news.
    ///
    /// A hint only: it may come for nothing, late or never, so callers poll as well.
    fn watch(&self, id: &RecordId) -> Option<BoxFuture<'static, ()>> {
        let _ = id;
        None
    }
}

/// What happens to a claim whose lease has lapsed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum OnLapse {
    /// At most once: the record becomes uncertain and nothing runs until somebody settles it.
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
    /// What is asked for.
    pub fingerprint: Fingerprint,
    /// Fresh for every attempt; the same when a lost answer is asked for again.
    pub nonce: Nonce,
    /// How long the claim is believed without renewal.
    pub lease: Duration,
    /// What to do with a lapsed claim.
    pub on_lapse: OnLapse,
    /// How many attempts in a row may end without a word from their owner; then the record becomes uncertain
    /// instead of being taken over. Attempts that released the key do not count.
    pub attempts_max: u32,
    /// How long a record that never finishes is kept for people before a sweep drops it.
    pub uncertain_retention: Duration,
}

/// The right to work on a key, as long as the record holds its fence.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Lease {
    /// Which record.
    pub id: RecordId,
    /// Which attempt.
    pub fence: Fence,
    /// How long the claim is believed without renewal.
    pub length: Duration,
}

/// Answer to a claim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Claim {
    /// The key is yours: run.
    Acquired(Lease),
    /// Somebody else is working on it.
    Busy {
        /// How long their claim is still believed if they do not renew it.
        lease_left: Duration,
    },
    /// The key was used for something else.
    Mismatch,
    /// It has been done; this is the outcome.
    Replay {
        /// The outcome.
        recorded: Recorded,
        /// How much longer the store will answer with it.
        remaining: Duration,
    },
    /// Nobody knows whether it has been done.
    Uncertain {
        /// The attempt of which nobody knows; name it to settle.
        fence: Fence,
        /// Why nobody knows.
        reason: Reason,
    },
    /// There is a record that cannot be read; treated like uncertain.
    Unreadable,
}

/// Answer to a write that names its attempt.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fenced {
    /// Done, now or by the same call before.
    Applied,
    /// Nothing changed: the record belongs to somebody else, is final, or is gone.
    Lost,
}

/// A decision about an uncertain record.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Settlement {
    /// The attempt that was looked at; another one in the record refuses the settlement.
    pub attempt: Nonce,
    /// Fresh for every settlement; the same when a lost answer is asked for again.
    pub nonce: Nonce,
    /// What is known now.
    pub verdict: Verdict,
}

/// What is known about an uncertain operation after somebody looked.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Verdict {
    /// It happened, and this is its outcome.
    Applied {
        /// What every retry is answered with.
        recorded: Recorded,
        /// For how long.
        retention: Duration,
    },
    /// It did not happen; the key is free.
    NotApplied,
}

/// Answer to a settlement.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Settled {
    /// Done, now or by the same settlement before.
    Applied,
    /// There is nothing to settle: the record is in this state.
    NotUncertain(State),
    /// The record belongs to another attempt than the one that was looked at.
    Changed,
    /// There is no such record.
    Absent,
}

/// Answer to a deletion.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Deleted {
    /// Removed.
    Applied,
    /// There is no such record.
    Absent,
    /// The record belongs to another attempt than the one that was looked at.
    Changed,
    /// Somebody is working on it.
    InProgress,
}

/// Answer to a read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Lookup {
    /// There is no record.
    Absent,
    /// There is one.
    Found {
        /// The record.
        record: Box<Record>,
        /// The store's clock when it was read, to judge the record's times by.
        now: Timestamp,
    },
    /// There is one, but it cannot be read.
    Unreadable {
        /// What is wrong with it; never its content.
        why: String,
    },
}

/// Which records to list. The default is all of them, a hundred a page.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Query {
    /// Only these states, judged at the time of reading; empty means all.
    pub states: Vec<State>,
    /// Only this namespace.
    pub namespace: Option<String>,
    /// Only operations that start with this.
    pub operation_prefix: Option<String>,
    /// Only records whose id starts with these hexadecimal digits. The first sixteen are the key's hash.
    pub id_prefix: Option<String>,
    /// Only records whose status is at least this old.
    pub age_min: Option<Duration>,
    /// Only records whose status is at most this old.
    pub age_max: Option<Duration>,
    /// How many at most.
    pub limit: usize,
    /// Where the page before ended: [`Page::next`].
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
    /// Whether `record` is asked for, all but the limit and the cursor.
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
pub struct Page {
    /// The records, newest first.
    pub records: Vec<Record>,
    /// Records on this page's stretch that could not be read; they are never left out silently.
    pub unreadable: Vec<RecordId>,
    /// Where the next page starts; none when this is the last.
    pub next: Option<String>,
    /// The store's clock when it was read.
    pub now: Timestamp,
}

/// What a sweep removed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Swept {
    /// Finished records and tombstones whose retention was over.
    pub expired: u64,
    /// Records that never finished and were dropped after their `uncertain_retention`. Somebody should know.
    pub dropped: u64,
    /// Whether more is due than fitted in the batch.
    pub more: bool,
}

/// How many records there are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Stats {
    /// Claims believed at the time of reading.
    pub in_progress: u64,
    /// Pinned successes.
    pub completed: u64,
    /// Pinned errors.
    pub failed: u64,
    /// Records of which nobody knows, lapsed claims included.
    pub uncertain: u64,
    /// Tombstones.
    pub released: u64,
    /// Bytes that the store takes up, as well as it knows.
    pub bytes: u64,
}

impl Stats {
    /// Counts one record in `state`.
    pub fn count(&mut self, state: State) {
        match state {
            State::InProgress => self.in_progress += 1,
            State::Completed => self.completed += 1,
            State::Failed => self.failed += 1,
            State::Uncertain => self.uncertain += 1,
            State::Released => self.released += 1,
        }
    }

    /// All records.
    pub fn records(&self) -> u64 {
        self.in_progress + self.completed + self.failed + self.uncertain + self.released
    }
}

/// The strongest thing that may honestly be said about a store as it is set up now.
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
    /// The promise in words that documents and health pages use.
    pub const fn words(self) -> &'static str {
        match self {
            Self::OneProcess => "de-duplication inside one living process; a restart forgets everything",
            Self::BestEffort => "best effort; acknowledged claims can be lost when the store fails",
            Self::AtMostOnce => "at most once; a crash leaves the key uncertain for you to settle",
        }
    }
}

/// How a store is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Health {
    /// What kind of store answers: `memory`, `file`, …
    pub store: &'static str,
    /// Computed from the settings in force, not from wishes.
    pub promise: Promise,
    /// Settings or conditions that somebody should look at.
    pub warnings: Vec<String>,
}
