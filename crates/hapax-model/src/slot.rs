//! [`Slot`]: a stored record, small enough to be kept by the million, and its way to and from a real
//! [`Record`].
//!
//! Times are kept relative to now, so the clock of the model has no end. What no decision reads is left out:
//! when the record was created and updated, why it is uncertain, what a released attempt answered. A test holds
//! the transition function to that.

use std::time::Duration;

use hapax_core::store::TOMBSTONE_RETENTION;
use hapax_core::{
    Class, Fence, Fingerprint, Format, Nonce, Reason, Record, RecordId, Recorded, Scope, ScopedKey, Status,
    Timestamp,
};

/// The moment at which every decision is taken; only distances to it matter.
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_000_000_000);
/// One step of the model's clock.
pub(crate) const TICK: Duration = Duration::from_secs(1);
/// The length of every lease: one tick, so that a claim is either fresh or lapsed.
pub(crate) const LEASE: Duration = TICK;
/// How long pinned outcomes are asked to be kept. Out of reach of the clock: [`Slot::expire`] ends it.
pub(crate) const RETENTION: Duration = Duration::from_secs(20_000);
/// How long unfinished records are asked to be kept.
pub(crate) const UNCERTAIN_RETENTION: Duration = Duration::from_secs(10_000);

/// Leases and lives longer than any that the protocol asks for are cut to this many ticks.
const TICKS_MAX: u64 = 9;

/// What the store holds for the key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Slot {
    /// Whose nonce the record holds.
    pub nonce: u8,
    /// The attempt number.
    pub attempt: u8,
    /// How many attempts in a row were taken over.
    pub takeovers: u8,
    /// Whether it was claimed for the other request.
    pub other: bool,
    /// Where it stands.
    pub phase: Phase,
    /// When it may be removed.
    pub expiry: Expiry,
}

/// Where a record stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Phase {
    /// Claimed, with this many ticks of its lease left.
    InProgress { ticks_left: u8 },
    /// Final, with the value made by this attempt.
    Pinned { value: u8 },
    /// Nobody knows.
    Uncertain,
    /// Free again.
    Released,
}

/// When a record may be removed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Expiry {
    /// In this many ticks.
    Ticks(u8),
    /// When the tombstone's time is over.
    Tombstone,
    /// When the time for unfinished records is over.
    Unfinished,
    /// When the retention of an outcome is over.
    Retention,
}

impl Slot {
    /// What `record` is to the model.
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

    /// The record that this stands for.
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

    /// When the claim lapses or lapsed: a whole retention ago when that is over, because renewing it must make up
    /// for all of that time.
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

    /// Whether this is a claim that is still believed.
    pub(crate) fn is_live(&self) -> bool {
        matches!(self.phase, Phase::InProgress { ticks_left } if ticks_left > 0)
    }

    /// Whether somebody claimed the key and nobody has said yet how it ended.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.phase, Phase::InProgress { .. } | Phase::Uncertain)
    }

    /// One tick of the clock later.
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

    /// After as long as it was asked to be kept; no lease lasts that long.
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
        // Ticks are not counted against these: a renewal, which makes up for ticks, may add a few.
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

/// The nonce that stands for attempt or settlement `id`.
pub(crate) fn nonce(id: u8) -> Nonce {
    Nonce::from_bytes([id; 16])
}

/// Which attempt or settlement `nonce` stands for.
pub(crate) fn nonce_id(nonce: Nonce) -> u8 {
    nonce.as_bytes()[0]
}

/// The value that attempt `tag` makes.
pub(crate) fn value_of(tag: u8) -> Recorded {
    static TAGS: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
    let at = usize::from(tag);
    Recorded::new(Class::Success, Format::FUNCTION, &TAGS[at..=at])
}

/// Which attempt made this value.
pub(crate) fn value_tag(recorded: &Recorded) -> u8 {
    recorded.payload[0]
}

/// The fingerprint of the request, or of the other request under the same key.
pub(crate) fn fingerprint(other: bool) -> Fingerprint {
    Fingerprint::from_parts(1, [u8::from(other); 32])
}

/// The record that everything here is about.
pub(crate) const ID: RecordId = RecordId::from_bytes([7; 32]);

/// The only key of the model.
pub(crate) fn scoped_key() -> ScopedKey {
    // One copy per thread: the checker's threads would otherwise fight over its reference counts.
    thread_local!(static SCOPE: Scope = Scope::new("pay"));
    ScopedKey { scope: SCOPE.with(Scope::clone), id: ID }
}

#[cfg(test)]
mod tests;
