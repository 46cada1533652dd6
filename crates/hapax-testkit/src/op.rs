//! [`Op`]: the name of a store call, for counting, targeting or printing calls.

use std::fmt;

/// Which method of [`Store`](hapax_core::Store) was called.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(missing_docs)]
pub enum Op {
    Claim,
    Renew,
    Complete,
    Release,
    Abandon,
    Settle,
    Get,
    List,
    Delete,
    Sweep,
    Stats,
    Health,
}

impl Op {
    /// Every operation, in the order of the trait.
    pub const ALL: [Self; 12] = [
        Self::Claim,
        Self::Renew,
        Self::Complete,
        Self::Release,
        Self::Abandon,
        Self::Settle,
        Self::Get,
        Self::List,
        Self::Delete,
        Self::Sweep,
        Self::Stats,
        Self::Health,
    ];

    /// The operations that may change a record.
    pub const WRITES: [Self; 8] = [
        Self::Claim,
        Self::Renew,
        Self::Complete,
        Self::Release,
        Self::Abandon,
        Self::Settle,
        Self::Delete,
        Self::Sweep,
    ];

    /// The method's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Claim => "claim",
            Self::Renew => "renew",
            Self::Complete => "complete",
            Self::Release => "release",
            Self::Abandon => "abandon",
            Self::Settle => "settle",
            Self::Get => "get",
            Self::List => "list",
            Self::Delete => "delete",
            Self::Sweep => "sweep",
            Self::Stats => "stats",
            Self::Health => "health",
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
