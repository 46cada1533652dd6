//! The state machine: pure functions from a record, a command and the time to a decision. **The source of truth.**
//!
//! The memory and file stores call these functions. The scripts, statements and conditions of every other store
//! must agree with them and are tested against them; the model checker explores them. Nothing here does I/O,
//! reads a clock or depends on a store.
//!
//! ```text
//!                 ┌──────────── claim ─────────────┐
//!                 ▼                                │
//!   (absent) ─ claim ─▶ in_progress ── release ─▶ released ── expires ─▶ (absent)
//!                        │  │   │                   ▲
//!               complete │  │   └ lapse, abandon ─▶ uncertain ─ settle: not applied, release ─▶ released
//!                        ▼  │                        │
//!          completed, failed ◀── settle: applied, complete
//!                        │
//!                        └ expires ─▶ (absent)
//! ```

use std::time::Duration;

use crate::fingerprint::Fingerprint;
use crate::key::RecordId;
use crate::record::{Fence, Nonce, Reason, Record, Recorded, State, Status, Timestamp};
use crate::store::{
    Claim, ClaimRequest, Deleted, Fenced, Lease, OnLapse, Settled, Settlement, TOMBSTONE_RETENTION, Verdict,
};

/// A change of the stored record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// Leave it unchanged, or absent.
    Keep,
    /// Replace it with this record.
    Put(Box<Record>),
    /// Remove it.
    Remove,
}

/// A change of the stored record, and the answer to send once the change is durable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decision<A> {
    /// The change.
    pub change: Change,
    /// The answer.
    pub answer: A,
}

impl<A> Decision<A> {
    fn keep(answer: A) -> Self {
        Self { change: Change::Keep, answer }
    }

    fn put(record: Record, answer: A) -> Self {
        Self { change: Change::Put(Box::new(record)), answer }
    }
}

/// Decides a claim (X-01 to X-04, F-01, D-01).
pub fn claim(record: Option<&Record>, ask: &ClaimRequest, now: Timestamp) -> Decision<Claim> {
    let Some(record) = record.filter(|record| !is_expired(record, now)) else {
        return acquire(None, ask, now);
    };
    if record.fence.nonce == ask.nonce {
        return repeat_claim(record, ask, now);
    }
    // A released key is free, also for a request that was corrected after its refusal.
    if !matches!(record.status, Status::Released { .. }) {
        match record.fingerprint.matches(&ask.fingerprint) {
            Some(true) => {}
            Some(false) => return Decision::keep(Claim::Mismatch),
            None => return Decision::keep(Claim::Unreadable),
        }
    }
    match &record.status {
        Status::Released { .. } => acquire(Some(record), ask, now),
        Status::Pinned { recorded } => Decision::keep(Claim::Replay {
            recorded: recorded.clone(),
            remaining: record.expires_at.since(now),
        }),
        Status::InProgress { lease_until } if *lease_until > now => {
            Decision::keep(Claim::Busy { lease_left: lease_until.since(now) })
        }
        Status::InProgress { .. } | Status::Uncertain { .. } => claim_lapsed(record, ask, now),
    }
}

/// The outcome that a [`claim`] of this request would replay, without claiming.
pub fn recall<'a>(record: &'a Record, fingerprint: &Fingerprint, now: Timestamp) -> Option<&'a Recorded> {
    match &record.status {
        Status::Pinned { recorded }
            if !is_expired(record, now) && record.fingerprint.matches(fingerprint) == Some(true) =>
        {
            Some(recorded)
        }
        _ => None,
    }
}

/// The claim was applied before: its answer was lost, or this is a delayed duplicate.
fn repeat_claim(record: &Record, ask: &ClaimRequest, now: Timestamp) -> Decision<Claim> {
    match &record.status {
        Status::InProgress { lease_until } => {
            let lease = Lease { id: record.key.id, fence: record.fence, length: ask.lease };
            Decision::put(extended(record, *lease_until, ask.lease, now), Claim::Acquired(lease))
        }
        Status::Pinned { recorded } => Decision::keep(Claim::Replay {
            recorded: recorded.clone(),
            remaining: record.expires_at.since(now),
        }),
        Status::Uncertain { reason } => {
            Decision::keep(Claim::Uncertain { fence: record.fence, reason: *reason })
        }
        // The attempt is over; acquiring again would leave a claim without an owner.
        Status::Released { .. } => Decision::keep(Claim::Busy { lease_left: Duration::ZERO }),
    }
}

/// The owner is gone: its claim lapsed or is already stored as uncertain.
fn claim_lapsed(record: &Record, ask: &ClaimRequest, now: Timestamp) -> Decision<Claim> {
    if may_take_over(record, ask.on_lapse, ask.attempts_max) {
        return acquire(Some(record), ask, now);
    }
    match record.status {
        Status::Uncertain { reason } => Decision::keep(Claim::Uncertain { fence: record.fence, reason }),
        _ => {
            let reason = Reason::Lapsed;
            Decision::put(
                changed(record, Status::Uncertain { reason }, now),
                Claim::Uncertain { fence: record.fence, reason },
            )
        }
    }
}

/// Whether a claim with these parameters takes over a record whose owner is gone (X-04).
pub fn may_take_over(record: &Record, on_lapse: OnLapse, attempts_max: u32) -> bool {
    match on_lapse {
        OnLapse::Rerun => record.takeovers.saturating_add(1) < attempts_max,
        OnLapse::Uncertain => false,
    }
}

fn acquire(before: Option<&Record>, ask: &ClaimRequest, now: Timestamp) -> Decision<Claim> {
    let attempt = before.map_or(1, |record| record.fence.attempt.saturating_add(1));
    let fence = Fence { nonce: ask.nonce, attempt };
    let takeovers = match before {
        Some(Record { status: Status::Released { .. }, .. }) | None => 0,
        Some(record) => record.takeovers.saturating_add(1),
    };
    let record = Record {
        key: ask.key.clone(),
        fingerprint: ask.fingerprint,
        fence,
        takeovers,
        status: Status::InProgress { lease_until: now.after(ask.lease) },
        created_at: before.map_or(now, |record| record.created_at),
        updated_at: now,
        expires_at: now.after(ask.uncertain_retention),
    };
    Decision::put(record, Claim::Acquired(Lease { id: ask.key.id, fence, length: ask.lease }))
}

/// Decides a renewal (X-03).
pub fn renew(record: Option<&Record>, lease: &Lease, now: Timestamp) -> Decision<Fenced> {
    match held(record, lease.fence.nonce) {
        Some(record) => match record.status {
            Status::InProgress { lease_until } => {
                Decision::put(extended(record, lease_until, lease.length, now), Fenced::Applied)
            }
            Status::Uncertain { .. } | Status::Pinned { .. } | Status::Released { .. } => {
                Decision::keep(Fenced::Lost)
            }
        },
        None => Decision::keep(Fenced::Lost),
    }
}

/// Decides a completion (X-02, D-01): final, and accepted as long as the record holds the attempt's nonce.
pub fn complete(
    record: Option<&Record>,
    lease: &Lease,
    done: &Recorded,
    retention: Duration,
    now: Timestamp,
) -> Decision<Fenced> {
    match held(record, lease.fence.nonce) {
        Some(record) => match record.status {
            Status::InProgress { .. } | Status::Uncertain { .. } => {
                Decision::put(pinned(record, done, retention, now), Fenced::Applied)
            }
            Status::Pinned { .. } => Decision::keep(Fenced::Applied),
            Status::Released { .. } => Decision::keep(Fenced::Lost),
        },
        None => Decision::keep(Fenced::Lost),
    }
}

/// Decides a release by the owner (X-09).
pub fn release(
    record: Option<&Record>,
    lease: &Lease,
    answered: Option<&Recorded>,
    now: Timestamp,
) -> Decision<Fenced> {
    match held(record, lease.fence.nonce) {
        Some(record) => match record.status {
            Status::InProgress { .. } | Status::Uncertain { .. } => {
                Decision::put(released(record, answered, now), Fenced::Applied)
            }
            Status::Released { .. } => Decision::keep(Fenced::Applied),
            Status::Pinned { .. } => Decision::keep(Fenced::Lost),
        },
        None => Decision::keep(Fenced::Lost),
    }
}

/// Decides an abandonment by the owner, whose outcome is unknown (X-07).
pub fn abandon(record: Option<&Record>, lease: &Lease, reason: Reason, now: Timestamp) -> Decision<Fenced> {
    match held(record, lease.fence.nonce) {
        Some(record) => match record.status {
            Status::InProgress { .. } => {
                Decision::put(changed(record, Status::Uncertain { reason }, now), Fenced::Applied)
            }
            Status::Uncertain { .. } => Decision::keep(Fenced::Applied),
            Status::Pinned { .. } | Status::Released { .. } => Decision::keep(Fenced::Lost),
        },
        None => Decision::keep(Fenced::Lost),
    }
}

/// Decides a settlement (D-07).
pub fn settle(record: Option<&Record>, settlement: &Settlement, now: Timestamp) -> Decision<Settled> {
    let Some(record) = record else {
        return Decision::keep(Settled::Absent);
    };
    if record.fence.nonce == settlement.nonce {
        return Decision::keep(Settled::Applied);
    }
    let state = record.state_at(now);
    if state != State::Uncertain {
        return Decision::keep(Settled::NotUncertain(state));
    }
    if record.fence.nonce != settlement.attempt {
        return Decision::keep(Settled::Changed);
    }
    let mut settled = match &settlement.verdict {
        Verdict::Applied { recorded, retention } => pinned(record, recorded, *retention, now),
        Verdict::NotApplied => released(record, None, now),
    };
    // Fences out the attempt that was settled.
    settled.fence.nonce = settlement.nonce;
    Decision::put(settled, Settled::Applied)
}

/// Decides a deletion (D-07).
pub fn delete(record: Option<&Record>, nonce: Nonce, now: Timestamp) -> Decision<Deleted> {
    let Some(record) = record else {
        return Decision::keep(Deleted::Absent);
    };
    if record.fence.nonce != nonce {
        return Decision::keep(Deleted::Changed);
    }
    if record.state_at(now) == State::InProgress {
        return Decision::keep(Deleted::InProgress);
    }
    Decision { change: Change::Remove, answer: Deleted::Applied }
}

/// Why a sweep may remove a record.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Due {
    /// It is finished or released, and its retention is over.
    Expired,
    /// It never finished and was not settled within its `uncertain_retention`.
    Dropped,
}

/// Whether a sweep may remove the record, and why.
///
/// A claim whose lease has not lapsed is never due, however old it is (X-03).
pub fn due(record: &Record, now: Timestamp) -> Option<Due> {
    if record.expires_at > now {
        return None;
    }
    match record.state_at(now) {
        State::Completed | State::Failed | State::Released => Some(Due::Expired),
        State::Uncertain => Some(Due::Dropped),
        State::InProgress => None,
    }
}

/// The change of a record when the only process that could own its claim is known to be gone.
pub fn restart(record: &Record, now: Timestamp) -> Change {
    match record.status {
        Status::InProgress { .. } => {
            Change::Put(Box::new(changed(record, Status::Uncertain { reason: Reason::Restarted }, now)))
        }
        _ => Change::Keep,
    }
}

/// A finished record or a tombstone whose retention is over counts as absent (D-01). An uncertain one does not: only a
/// sweep, which logs and counts it, removes it.
fn is_expired(record: &Record, now: Timestamp) -> bool {
    due(record, now) == Some(Due::Expired)
}

fn held(record: Option<&Record>, nonce: Nonce) -> Option<&Record> {
    record.filter(|record| record.fence.nonce == nonce)
}

/// The same claim with its lease extended to `lease` from now. `uncertain_retention` counts from the owner's last
/// renewal, so the expiry moves along: an uncertain record is never due the moment it becomes one.
fn extended(record: &Record, lease_until: Timestamp, lease: Duration, now: Timestamp) -> Record {
    let extended_until = now.after(lease);
    let expires_at = record.expires_at.after(extended_until.since(lease_until));
    let status = Status::InProgress { lease_until: extended_until };
    Record { status, expires_at, ..record.clone() }
}

fn changed(record: &Record, status: Status, now: Timestamp) -> Record {
    Record { status, updated_at: now, ..record.clone() }
}

fn pinned(record: &Record, done: &Recorded, retention: Duration, now: Timestamp) -> Record {
    let status = Status::Pinned { recorded: done.clone() };
    Record { expires_at: now.after(retention), ..changed(record, status, now) }
}

fn released(record: &Record, answered: Option<&Recorded>, now: Timestamp) -> Record {
    let status = Status::Released { answered: answered.cloned() };
    Record { expires_at: now.after(TOMBSTONE_RETENTION), ..changed(record, status, now) }
}

/// Any of the commands above, for models, property tests and recorded histories.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Command {
    Claim(ClaimRequest),
    Renew(Lease),
    Complete { lease: Lease, done: Recorded, retention: Duration },
    Release { lease: Lease, answered: Option<Recorded> },
    Abandon { lease: Lease, reason: Reason },
    Settle { id: RecordId, settlement: Settlement },
    Delete { id: RecordId, nonce: Nonce },
}

/// The answer to a [`Command`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Answer {
    Claim(Claim),
    Fenced(Fenced),
    Settled(Settled),
    Deleted(Deleted),
}

impl Command {
    /// The record that the command addresses.
    pub fn id(&self) -> &RecordId {
        match self {
            Self::Claim(ask) => &ask.key.id,
            Self::Renew(lease)
            | Self::Complete { lease, .. }
            | Self::Release { lease, .. }
            | Self::Abandon { lease, .. } => &lease.id,
            Self::Settle { id, .. } | Self::Delete { id, .. } => id,
        }
    }
}

/// Decides any command: `(record?, command, now) -> decision`.
pub fn decide(record: Option<&Record>, command: &Command, now: Timestamp) -> Decision<Answer> {
    match command {
        Command::Claim(ask) => claim(record, ask, now).map(Answer::Claim),
        Command::Renew(lease) => renew(record, lease, now).map(Answer::Fenced),
        Command::Complete { lease, done, retention } => {
            complete(record, lease, done, *retention, now).map(Answer::Fenced)
        }
        Command::Release { lease, answered } => {
            release(record, lease, answered.as_ref(), now).map(Answer::Fenced)
        }
        Command::Abandon { lease, reason } => abandon(record, lease, *reason, now).map(Answer::Fenced),
        Command::Settle { settlement, .. } => settle(record, settlement, now).map(Answer::Settled),
        Command::Delete { nonce, .. } => delete(record, *nonce, now).map(Answer::Deleted),
    }
}

impl<A> Decision<A> {
    fn map<B>(self, wrap: impl FnOnce(A) -> B) -> Decision<B> {
        Decision { change: self.change, answer: wrap(self.answer) }
    }
}
