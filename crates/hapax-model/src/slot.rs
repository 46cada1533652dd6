//! [`Slot`]: a compact stored record, because the checker keeps millions, and its conversion from and to a real
//! [`Record`].
//!
//! Times are relative to now, so the state space is finite. Fields that no decision reads are left out: the times of
//! creation and update, the reason of uncertainty, the answer of a released attempt. A test checks that the transition
//! function does not read them.

use std::time::Duration;

use hapax_core::store::TOMBSTONE_RETENTION;
use hapax_core::{
    Class, Fence, Fingerprint, Format, Nonce, Reason, Record, RecordId, Recorded, Scope, ScopedKey, Status,
    Timestamp,
};

/// The time of every decision; only differences to it matter.
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_000_000_000);
/// One step of the model's clock.
pub(crate) const TICK: Duration = Duration::from_secs(1);
/// The length of every lease: one tick, so that a claim is either fresh or lapsed.
pub(crate) const LEASE: Duration = TICK;
/// The retention of pinned outcomes. Beyond the reach of ticks: [`Slot::expired`] ends it.
pub(crate) const RETENTION: Duration = Duration::from_secs(20_000);
/// The `uncertain_retention` of every claim.
pub(crate) const UNCERTAIN_RETENTION: Duration = Duration::from_secs(10_000);

/// Durations are clamped to this many ticks, more than the protocol ever sets.
const TICKS_MAX: u64 = 9;

/// The stored record of the key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Slot {
    /// The attempt or settlement whose nonce the record holds.
    pub nonce: u8,
    /// The attempt number.
    pub attempt: u8,
    /// The number of consecutive takeovers.
    pub takeovers: u8,
    /// Whether it was claimed for the other request.
    pub other: bool,
    /// The state.
    pub phase: Phase,
    /// When it may be removed.
    pub expiry: Expiry,
}

/// The state of a record.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Phase {
    /// Claimed, with this many ticks of its lease left.
    InProgress { ticks_left: u8 },
    /// Final, with the value produced by this attempt.
    Pinned { value: u8 },
    /// The outcome is unknown.
    Uncertain,
    /// Free again.
    Released,
}

/// When a record may be removed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Expiry {
    /// In this many ticks.
    Ticks(u8),
    /// After the retention of a tombstone.
    Tombstone,
    /// After the `uncertain_retention`.
    Unfinished,
    /// After the retention of an outcome.
    Retention,
}

impl Slot {
    /// Abstracts `record`.
    pub(crate) fn of(record: &Record) -> Self {
        let phase = match &record.status {
            Status::InProgress { lease_until } => {
                Phase::InProgress { ticks_left: ticks(lease_until.since(NOW)) }
            }
            Status::Pinned { recorded } => Phase::Pinned { value: value_tag(recorded) },
            Status::Uncertain { .. } => Phase::Uncertain,
            Status::Released { .. } => Phase::Released,
        };
        Self {
            nonce: nonce_id(record.fence.nonce),
            attempt: u8::try_from(record.fence.attempt).unwrap_or(u8::MAX),
            takeovers: u8::try_from(record.takeovers).unwrap_or(u8::MAX),
            other: record.fingerprint == fingerprint(true),
            phase,
            expiry: Expiry::of(record.expires_at.since(NOW)),
        }
    }

    /// A record with this abstraction.
    pub(crate) fn record(&self) -> Record {
        let status = match self.phase {
            Phase::InProgress { .. } => Status::InProgress { lease_until: self.lease_until() },
            Phase::Pinned { value } => Status::Pinned { recorded: value_of(value) },
            Phase::Uncertain => Status::Uncertain { reason: Reason::Lapsed },
            Phase::Released => Status::Released { answered: None },
        };
        Record {
            key: scoped_key(),
            fingerprint: fingerprint(self.other),
            fence: Fence { nonce: nonce(self.nonce), attempt: u32::from(self.attempt) },
            takeovers: u32::from(self.takeovers),
            status,
            created_at: NOW,
            updated_at: NOW,
            expires_at: NOW.after(self.expiry.left()),
        }
    }

    /// When the claim lapses or lapsed: a whole retention ago when that is over, because a renewal must make up for all
    /// of that time.
    fn lease_until(&self) -> Timestamp {
        match self.phase {
            Phase::InProgress { ticks_left: 0 } if self.expiry == Expiry::Ticks(0) => {
                let ago = UNCERTAIN_RETENTION.as_millis() as u64;
                Timestamp::from_millis(NOW.as_millis() - ago)
            }
            Phase::InProgress { ticks_left } => NOW.after(TICK * u32::from(ticks_left)),
            _ => NOW,
        }
    }

    /// Whether this is a claim whose lease has not lapsed.
    pub(crate) fn is_live(&self) -> bool {
        matches!(self.phase, Phase::InProgress { ticks_left } if ticks_left > 0)
    }

    /// Whether the key is claimed without a known outcome.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.phase, Phase::InProgress { .. } | Phase::Uncertain)
    }

    /// The record one tick later.
    #[must_use]
    pub(crate) fn ticked(mut self) -> Self {
        if let Phase::InProgress { ticks_left } = &mut self.phase {
            *ticks_left = ticks_left.saturating_sub(1);
        }
        if let Expiry::Ticks(left) = &mut self.expiry {
            *left = left.saturating_sub(1);
        }
        self
    }

    /// The record at the end of its retention; every lease has lapsed by then.
    #[must_use]
    pub(crate) fn expired(self) -> Self {
        let phase = match self.phase {
            Phase::InProgress { .. } => Phase::InProgress { ticks_left: 0 },
            phase => phase,
        };
        Self { phase, expiry: Expiry::Ticks(0), ..self }
    }
}

impl Expiry {
    fn of(left: Duration) -> Self {
        // Ticks do not reduce these: a renewal, which makes up for ticks, may add a few.
        let is_about = |asked: Duration| left >= asked && left - asked <= TICK * 2;
        if is_about(TOMBSTONE_RETENTION) {
            Self::Tombstone
        } else if is_about(UNCERTAIN_RETENTION) {
            Self::Unfinished
        } else if is_about(RETENTION) {
            Self::Retention
        } else {
            Self::Ticks(ticks(left))
        }
    }

    fn left(self) -> Duration {
        match self {
            Self::Ticks(ticks) => TICK * u32::from(ticks),
            Self::Tombstone => TOMBSTONE_RETENTION,
            Self::Unfinished => UNCERTAIN_RETENTION,
            Self::Retention => RETENTION,
        }
    }
}

fn ticks(left: Duration) -> u8 {
    left.as_secs().min(TICKS_MAX) as u8
}

/// The nonce of attempt or settlement `id`.
pub(crate) fn nonce(id: u8) -> Nonce {
    Nonce::from_bytes([id; 16])
}

/// The attempt or settlement of `nonce`.
pub(crate) fn nonce_id(nonce: Nonce) -> u8 {
    nonce.as_bytes()[0]
}

/// The tag of the only value that is an error: the dead letter of the model of events.
pub(crate) const DEAD_LETTER: u8 = 15;

/// The value that attempt `tag` produces.
pub(crate) fn value_of(tag: u8) -> Recorded {
    static TAGS: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
    let at = usize::from(tag);
    let class = if tag == DEAD_LETTER { Class::Error } else { Class::Success };
    Recorded::new(class, Format::FUNCTION, &TAGS[at..=at])
}

/// The attempt that produced this value.
pub(crate) fn value_tag(recorded: &Recorded) -> u8 {
    recorded.payload[0]
}

/// The fingerprint of the request, or of the other request under the same key.
pub(crate) fn fingerprint(other: bool) -> Fingerprint {
    Fingerprint::from_parts(1, [u8::from(other); 32])
}

/// The id of the only record of the model.
pub(crate) const ID: RecordId = RecordId::from_bytes([7; 32]);

/// The only key of the model.
pub(crate) fn scoped_key() -> ScopedKey {
    // One copy per thread, to avoid contention on its reference counts.
    thread_local!(static SCOPE: Scope = Scope::new("pay"));
    ScopedKey { scope: SCOPE.with(Scope::clone), id: ID }
}

#[cfg(test)]
mod tests;
