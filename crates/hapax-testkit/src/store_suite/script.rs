//! Helpers of the cases: requests, outcomes and common steps.

use std::fmt::Debug;
use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;
use hapax_core::{
    Claim, ClaimRequest, Class, Fenced, Fingerprint, Format, Key, Lease, Lookup, Nonce, OnLapse, Reason,
    Record, RecordId, Recorded, Scope, ScopedKey, Settlement, State, Store, StoreError, Verdict,
};

use crate::rig::Rig;

/// Takeovers allowed in the cases that do not test their number.
const ATTEMPTS_MAX: u32 = 5;

/// The scope of every key that does not test scopes.
const OPERATION: &str = "POST /orders";

/// The key with this name in the default scope.
pub(super) fn key(name: &str) -> ScopedKey {
    key_in(Scope::new(OPERATION).in_namespace("suite"), name)
}

/// The key with this name in `scope`.
pub(super) fn key_in(scope: Scope, name: &str) -> ScopedKey {
    ScopedKey::new(scope, &Key::new(name).expect("the cases use proper keys"))
}

/// The fingerprint of a request body in words.
pub(super) fn fingerprint(words: &str) -> Fingerprint {
    Fingerprint::builder().part("words", words.as_bytes()).build()
}

/// A first claim of the key with this name, without takeovers.
pub(super) fn ask(rig: &impl Rig, name: &str) -> ClaimRequest {
    let lease = rig.facts().lease;
    ClaimRequest {
        key: key(name),
        fingerprint: fingerprint("two red socks"),
        nonce: Nonce::random(),
        lease,
        on_lapse: OnLapse::Uncertain,
        attempts_max: ATTEMPTS_MAX,
        uncertain_retention: lease * 20,
    }
}

/// Another attempt of the same request.
pub(super) fn retry(ask: &ClaimRequest) -> ClaimRequest {
    ClaimRequest { nonce: Nonce::random(), ..ask.clone() }
}

/// Another attempt of the same request that may take over a lapsed claim.
pub(super) fn takeover(ask: &ClaimRequest) -> ClaimRequest {
    ClaimRequest { on_lapse: OnLapse::Rerun, ..retry(ask) }
}

/// The retention of finished records in the cases: a few leases.
pub(super) fn retention(rig: &impl Rig) -> Duration {
    rig.facts().lease * 4
}

/// A successful outcome with metadata and payload.
pub(super) fn outcome(text: &str) -> Recorded {
    Recorded::new(Class::Success, Format::FUNCTION, text.to_owned()).with_meta(Bytes::from_static(b"meta"))
}

/// The lease of `ask` if it was granted on attempt `attempt`, whether or not it was.
pub(super) fn lease_of(ask: &ClaimRequest, attempt: u32) -> Lease {
    Lease { id: ask.key.id, fence: hapax_core::Fence { nonce: ask.nonce, attempt }, length: ask.lease }
}

/// A settlement of the attempt with this nonce.
pub(super) fn settlement(attempt: Nonce, verdict: Verdict) -> Settlement {
    Settlement::new(attempt, verdict)
}

/// Claims a key, which must be acquired.
pub(super) async fn acquire(store: &dyn Store, ask: &ClaimRequest) -> Lease {
    match claim(store, ask).await {
        Claim::Acquired(lease) => lease,
        other => panic!("the claim should be acquired, not {other:?}"),
    }
}

/// Claims a key, whatever the answer.
pub(super) async fn claim(store: &dyn Store, ask: &ClaimRequest) -> Claim {
    store.claim(ask).await.expect("claim answers")
}

/// Completes with the default retention, whatever the answer.
pub(super) async fn complete(rig: &impl Rig, store: &dyn Store, lease: &Lease, done: &Recorded) -> Fenced {
    store.complete(lease, done, retention(rig)).await.expect("complete answers")
}

/// Releases without an answer, whatever the result.
pub(super) async fn release(store: &dyn Store, lease: &Lease) -> Fenced {
    store.release(lease, None).await.expect("release answers")
}

/// The writes that name an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Write {
    Renew,
    Complete,
    Release,
    Abandon,
}

impl Write {
    /// Those that change least first, so that a store that applies one fails at that one.
    pub(super) const ALL: [Self; 4] = [Self::Renew, Self::Abandon, Self::Release, Self::Complete];

    /// Sends the write, whatever the answer.
    pub(super) async fn send(self, rig: &impl Rig, store: &dyn Store, lease: &Lease) -> Fenced {
        self.try_send(rig, store, lease).await.expect("the write answers")
    }

    /// Sends the write.
    pub(super) async fn try_send(
        self,
        rig: &impl Rig,
        store: &dyn Store,
        lease: &Lease,
    ) -> Result<Fenced, StoreError> {
        match self {
            Self::Renew => store.renew(lease).await,
            Self::Complete => store.complete(lease, &outcome("done"), retention(rig)).await,
            Self::Release => store.release(lease, None).await,
            Self::Abandon => store.abandon(lease, Reason::Declared).await,
        }
    }
}

/// The stored record, which must be present and readable.
pub(super) async fn record(store: &dyn Store, id: &RecordId) -> Record {
    found(store, id).await.expect("the record is there")
}

/// The stored record, if there is one.
pub(super) async fn found(store: &dyn Store, id: &RecordId) -> Option<Record> {
    match store.get(id).await.expect("get answers") {
        Lookup::Found { record, .. } => Some(*record),
        Lookup::Absent => None,
        Lookup::Unreadable { why } => panic!("the record should be readable: {why}"),
    }
}

/// The record's state by the store's clock now, if there is a record.
pub(super) async fn state(store: &dyn Store, id: &RecordId) -> Option<State> {
    match store.get(id).await.expect("get answers") {
        Lookup::Found { record, now } => Some(record.state_at(now)),
        Lookup::Absent => None,
        Lookup::Unreadable { why } => panic!("the record should be readable: {why}"),
    }
}

/// A record in each of its states, with the lease of the attempt that it holds.
pub(super) async fn in_state(rig: &impl Rig, store: &dyn Store, state: State) -> (ClaimRequest, Lease) {
    let ask = ask(rig, state.name());
    let lease = acquire(store, &ask).await;
    let applied = match state {
        State::InProgress => Fenced::Applied,
        State::Completed => complete(rig, store, &lease, &outcome("done")).await,
        State::Failed => {
            let mut done = outcome("refused");
            done.class = Class::Error;
            complete(rig, store, &lease, &done).await
        }
        State::Uncertain => store.abandon(&lease, Reason::Panicked).await.expect("abandon answers"),
        State::Released => release(store, &lease).await,
    };
    assert_eq!(applied, Fenced::Applied, "the record gets into state {state}");
    (ask, lease)
}

/// Panics unless the answer is uncertain, of the attempt `lease` and for `reason`.
#[track_caller]
pub(super) fn assert_uncertain(answer: Claim, lease: &Lease, reason: Reason) {
    assert_eq!(answer, Claim::Uncertain { fence: lease.fence, reason });
}

/// Panics unless the answer is a replay of `done`.
#[track_caller]
pub(super) fn assert_replays(answer: &Claim, done: &Recorded) {
    match answer {
        Claim::Replay { recorded, .. } => assert_eq!(recorded, done, "the outcome is replayed as recorded"),
        other => panic!("the claim should be answered with the outcome, not {other:?}"),
    }
}

/// Panics unless the answer is busy.
#[track_caller]
pub(super) fn assert_busy(answer: &Claim) {
    assert!(matches!(answer, Claim::Busy { .. }), "the key should be busy, not {answer:?}");
}

/// The number that the environment variable `name` sets, or `default` when it is not set.
pub(super) fn from_env<N: FromStr<Err: Debug>>(name: &str, default: N) -> N {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|error| panic!("{name}={text} is no number: {error:?}")),
        Err(_) => default,
    }
}
