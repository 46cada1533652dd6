//! The stored state of one scoped key: [`Record`], its [`State`], the [`Recorded`] outcome and the [`Fence`].
//!
//! This file owns the shape of a record. [`transition`](crate::transition) owns how a record may change,
//! [`codec`](crate::codec) how it is encoded.

use std::cell::RefCell;
use std::fmt;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::fingerprint::Fingerprint;
use crate::key::ScopedKey;

/// A time on the store's clock, in milliseconds since the Unix epoch.
///
/// Only the store that wrote a timestamp may compare it with "now": clocks of two machines differ.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The time `ms` milliseconds after the Unix epoch.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms)
    }

    /// Milliseconds since the Unix epoch.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// This time plus `span`, saturating.
    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(span.as_millis()).unwrap_or(u64::MAX)))
    }

    /// The duration from `earlier` to this time; zero when `earlier` is not earlier.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

/// The random part of a [`Fence`]: 128 bits chosen by the claimant for one attempt, compared by equality.
///
/// Equality survives a store that lost its latest writes; an ordered counter does not.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nonce([u8; 16]);

impl Nonce {
    /// A fresh nonce: random bytes from the operating system, read in blocks.
    ///
    /// # Panics
    /// When the operating system has no random source: a guessable fence would be worse than none.
    pub fn random() -> Self {
        let mut nonce = RANDOM.with_borrow_mut(RandomBuffer::take);
        // A forked process inherits the unused bytes. The monotonic clock makes the nonces of both processes differ.
        for (byte, tick) in nonce[8..].iter_mut().zip(nanos_since_start().to_ne_bytes()) {
            *byte ^= tick;
        }
        Self(nonce)
    }

    /// The nonce with these bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The bytes of the nonce.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Half of it identifies the attempt in logs without letting a reader of logs forge a write.
        self.0[..8].iter().try_for_each(|b| write!(f, "{b:02x}"))?;
        f.write_str("…")
    }
}

/// A thread's buffer of random bytes, for 64 nonces: a system call per nonce would cost more than a claim.
struct RandomBuffer {
    bytes: [u8; 1024],
    used: usize,
}

thread_local! {
    static RANDOM: RefCell<RandomBuffer> = const { RefCell::new(RandomBuffer { bytes: [0; 1024], used: 1024 }) };
}

impl RandomBuffer {
    fn take(&mut self) -> [u8; 16] {
        if self.used == self.bytes.len() {
            getrandom::fill(&mut self.bytes).expect("the operating system's random source answers");
            self.used = 0;
        }
        let mut taken = [0; 16];
        let left = &mut self.bytes[self.used..self.used + 16];
        taken.copy_from_slice(left);
        left.fill(0);
        self.used += 16;
        taken
    }
}

fn nanos_since_start() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    u64::try_from(START.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// The fencing token of one attempt, checked by every later write.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Fence {
    /// Names the attempt; a write applies only while the record holds this nonce.
    pub nonce: Nonce,
    /// 1 for the first attempt, incremented by every later one; for fencing downstream systems.
    pub attempt: u32,
}

/// The state of a record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum State {
    /// An owner holds the claim and is presumed to be working.
    InProgress,
    /// A pinned outcome of class success.
    Completed,
    /// A pinned outcome of class error.
    Failed,
    /// The owner is gone and it is unknown whether the operation happened.
    Uncertain,
    /// The key is free; a tombstone of the last attempt.
    Released,
}

impl State {
    /// Every state, in the order of the documentation.
    pub const ALL: [Self; 5] =
        [Self::InProgress, Self::Completed, Self::Failed, Self::Uncertain, Self::Released];

    /// Whether the outcome is final: retries are answered with it until its retention ends.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed)
    }

    /// The name used in SQL, JSON, metrics and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Uncertain => "uncertain",
            Self::Released => "released",
        }
    }

    /// The state with this [`name`](Self::name).
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why it is unknown whether the operation happened.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reason {
    /// The lease lapsed.
    Lapsed,
    /// The handler panicked.
    Panicked,
    /// The process that owned the store ended while the claim was open.
    Restarted,
    /// The handler declared its outcome unknown.
    Declared,
    /// The connection to the handler was reset before its answer.
    Reset,
    /// The handler timed out.
    TimedOut,
    /// The handler's answer was truncated.
    Truncated,
    /// The status of the answer leaves the outcome open, such as a gateway's 502 or 504.
    Answered,
    /// The service failed without an answer, or with an unusable one.
    NoAnswer,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Self; 9] = [
        Self::Lapsed,
        Self::Panicked,
        Self::Restarted,
        Self::Declared,
        Self::Reset,
        Self::TimedOut,
        Self::Truncated,
        Self::Answered,
        Self::NoAnswer,
    ];

    /// The name used in SQL, JSON, metrics and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lapsed => "lapsed",
            Self::Panicked => "panicked",
            Self::Restarted => "restarted",
            Self::Declared => "declared",
            Self::Reset => "reset",
            Self::TimedOut => "timed_out",
            Self::Truncated => "truncated",
            Self::Answered => "answered",
            Self::NoAnswer => "no_answer",
        }
    }

    /// The reason as a sentence, for logs and refusals.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Lapsed => "the lease ended without a word from its owner",
            Self::Panicked => "the handler panicked",
            Self::Restarted => "the process that ran it ended before it did",
            Self::Declared => "the handler said that it does not know",
            Self::Reset => "the connection to the service broke off before its answer",
            Self::TimedOut => "the service did not answer in time",
            Self::Truncated => "the answer of the service broke off before its end",
            Self::Answered => "the status of the answer leaves it open, such as a gateway's 502 or 504",
            Self::NoAnswer => "the service ended with an error instead of an answer that can be used",
        }
    }
}

/// Whether an outcome is a success or an error; a pinned error is *failed*, not *completed*.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Class {
    /// The operation succeeded.
    Success,
    /// The operation ended with an error.
    Error,
}

/// The encoding of the bytes of a [`Recorded`], by the surface that wrote them.
///
/// A surface must refuse to decode any other format: a function's result is not an HTTP response.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Format(pub u8);

impl Format {
    /// The result of a function: JSON in the payload.
    pub const FUNCTION: Self = Self(1);
    /// An HTTP response: head in the metadata, body in the payload.
    pub const HTTP: Self = Self(2);
    /// Text written by the operator who settled the record.
    pub const OPERATOR: Self = Self(3);
    /// The outcome exceeded the size limit or could not be encoded: the record shows that the operation ended and with
    /// which class, but not its result.
    pub const NOT_KEPT: Self = Self(4);
    /// An event that its consumer does not process any more: why and the event's properties in the metadata, its data
    /// in the payload. It is the only copy of the event, so it is recorded whole or not at all.
    pub const DEAD_LETTER: Self = Self(5);
}

/// A recorded outcome, from which retries are answered.
#[derive(Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Recorded {
    /// Success or error.
    pub class: Class,
    /// The encoding of `meta` and `payload`.
    pub format: Format,
    /// Metadata of the payload: a response head, an error code.
    pub meta: Bytes,
    /// The result.
    pub payload: Bytes,
}

impl Recorded {
    /// An outcome of `class` in `format` with a payload and no metadata.
    pub fn new(class: Class, format: Format, payload: impl Into<Bytes>) -> Self {
        Self { class, format, meta: Bytes::new(), payload: payload.into() }
    }

    /// Sets the metadata.
    #[must_use]
    pub fn with_meta(mut self, meta: impl Into<Bytes>) -> Self {
        self.meta = meta.into();
        self
    }

    /// The size of metadata and payload together, in bytes.
    pub fn len(&self) -> usize {
        self.meta.len() + self.payload.len()
    }

    /// Whether both metadata and payload are empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl fmt::Debug for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Sizes only: a stored body may hold secrets.
        f.debug_struct("Recorded")
            .field("class", &self.class)
            .field("format", &self.format)
            .field("meta_bytes", &self.meta.len())
            .field("payload_bytes", &self.payload.len())
            .finish()
    }
}

/// A record's [`State`] with its data.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Status {
    /// Claimed; valid until `lease_until` on the store's clock.
    InProgress {
        /// When the lease lapses unless it is renewed.
        lease_until: Timestamp,
    },
    /// Final.
    Pinned {
        /// The outcome that retries are answered with.
        recorded: Recorded,
    },
    /// The outcome is unknown.
    Uncertain {
        /// Why it is unknown.
        reason: Reason,
    },
    /// Free again.
    Released {
        /// The answer of the released attempt, if there was one.
        answered: Option<Recorded>,
    },
}

/// The stored state of one scoped key.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Record {
    /// The operation.
    pub key: ScopedKey,
    /// The fingerprint of the request; that of a retry must match.
    pub fingerprint: Fingerprint,
    /// The attempt that wrote last.
    pub fence: Fence,
    /// The number of consecutive takeovers from an owner that was gone. A release resets it.
    pub takeovers: u32,
    /// The state and its data.
    pub status: Status,
    /// When the first attempt claimed the key.
    pub created_at: Timestamp,
    /// When the status last changed.
    pub updated_at: Timestamp,
    /// When a sweep may remove the record. Never the lease: that is a field of [`Status::InProgress`].
    pub expires_at: Timestamp,
}

impl Record {
    /// The stored state.
    ///
    /// A lapsed claim stays [`State::InProgress`] here until a later call changes it; show users
    /// [`state_at`](Self::state_at) instead.
    pub const fn state(&self) -> State {
        match &self.status {
            Status::InProgress { .. } => State::InProgress,
            Status::Pinned { recorded } => match recorded.class {
                Class::Success => State::Completed,
                Class::Error => State::Failed,
            },
            Status::Uncertain { .. } => State::Uncertain,
            Status::Released { .. } => State::Released,
        }
    }

    /// The effective state at `now`: a claim whose lease has lapsed is uncertain, whether or not that is stored yet.
    pub fn state_at(&self, now: Timestamp) -> State {
        if self.is_lapsed(now) { State::Uncertain } else { self.state() }
    }

    /// Whether this is a claim whose lease has lapsed at `now`.
    pub fn is_lapsed(&self, now: Timestamp) -> bool {
        matches!(self.status, Status::InProgress { lease_until } if lease_until <= now)
    }

    /// The stored outcome: pinned, or the answer of a released attempt.
    pub const fn recorded(&self) -> Option<&Recorded> {
        match &self.status {
            Status::Pinned { recorded } => Some(recorded),
            Status::Released { answered } => answered.as_ref(),
            Status::InProgress { .. } | Status::Uncertain { .. } => None,
        }
    }
}
