//! The planted defects of consumer, cache and redriver: the check must find each of them.

/// A change of the consumer, the cache or the redriver that breaks a property.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Defect {
    /// A success is acknowledged before it is recorded.
    AckBeforeCompletion,
    /// An event in progress elsewhere is acknowledged.
    AckOnBusy,
    /// An event is acknowledged as soon as its key is claimed.
    AckOnClaim,
    /// A dead letter is acknowledged before it is recorded.
    AckBeforeDeadLetter,
    /// A failed attempt is acknowledged when its key is released.
    AckOnRelease,
    /// An uncertain event is acknowledged without being settled.
    AckOnUncertain,
    /// An attempt that lost its key to another acknowledges its event.
    AckWhenSuperseded,
    /// An event is acknowledged when the store did not answer.
    AckWhenStoreIsDown,
    /// An uncertain event is held and never settled.
    UncertainIsHeld,
    /// The redriver deletes the dead letter before it publishes the event.
    RedriveDeletesFirst,
    /// The cache answers from claims, as if they were finished records.
    ClaimsCached,
    /// The cache is filled before the completion is confirmed.
    FactBeforeCompletion,
    /// A deletion leaves the finished record in the cache.
    DeletionLeavesFact,
    /// A late writer overwrites the tombstone of a deletion in the cache.
    TombstoneIsIgnored,
}

impl Defect {
    /// Every defect.
    pub const ALL: [Self; 14] = [
        Self::AckBeforeCompletion,
        Self::AckOnBusy,
        Self::AckOnClaim,
        Self::AckBeforeDeadLetter,
        Self::AckOnRelease,
        Self::AckOnUncertain,
        Self::AckWhenSuperseded,
        Self::AckWhenStoreIsDown,
        Self::UncertainIsHeld,
        Self::RedriveDeletesFirst,
        Self::ClaimsCached,
        Self::FactBeforeCompletion,
        Self::DeletionLeavesFact,
        Self::TombstoneIsIgnored,
    ];

    /// A description of the defect.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AckBeforeCompletion => "ack before complete",
            Self::AckOnBusy => "ack on busy",
            Self::AckOnClaim => "ack on claim",
            Self::AckBeforeDeadLetter => "dead letter acked before it is pinned",
            Self::AckOnRelease => "ack on release",
            Self::AckOnUncertain => "ack on uncertain",
            Self::AckWhenSuperseded => "ack of a superseded attempt",
            Self::AckWhenStoreIsDown => "ack while the store is down",
            Self::UncertainIsHeld => "an uncertain event is never settled",
            Self::RedriveDeletesFirst => "redrive deletes first",
            Self::ClaimsCached => "a cache of claims taken for facts",
            Self::FactBeforeCompletion => "the cache is filled before the completion",
            Self::DeletionLeavesFact => "a deletion leaves the cached record",
            Self::TombstoneIsIgnored => "a late writer overwrites the tombstone in the cache",
        }
    }

    /// The properties that it breaks.
    pub const fn breaks(self) -> &'static [&'static str] {
        match self {
            Self::AckBeforeCompletion
            | Self::AckOnBusy
            | Self::AckOnClaim
            | Self::AckBeforeDeadLetter
            | Self::AckOnRelease
            | Self::AckOnUncertain
            | Self::AckWhenSuperseded
            | Self::AckWhenStoreIsDown
            | Self::ClaimsCached
            | Self::FactBeforeCompletion => &["N1", "N2"],
            Self::UncertainIsHeld => &["N4"],
            Self::RedriveDeletesFirst | Self::DeletionLeavesFact | Self::TombstoneIsIgnored => &["N3"],
        }
    }
}
