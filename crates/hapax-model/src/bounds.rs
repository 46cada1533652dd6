//! The [`Mode`] to explore and the [`Bounds`] of the search.

use hapax_core::OnLapse;

/// The execution mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// A lapsed claim becomes uncertain.
    AtMostOnce,
    /// A lapsed claim may be taken over.
    AtLeastOnce,
    /// The effect becomes visible in the step that pins the outcome; a lapsed claim may be taken over.
    Transactional,
}

impl Mode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::AtMostOnce, Self::AtLeastOnce, Self::Transactional];

    /// The short name used on the command line and in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AtMostOnce => "amo",
            Self::AtLeastOnce => "alo",
            Self::Transactional => "t",
        }
    }

    /// The mode with this [`name`](Self::name).
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }

    /// The handling of lapsed claims in this mode.
    pub const fn on_lapse(self) -> OnLapse {
        match self {
            Self::AtMostOnce => OnLapse::Uncertain,
            Self::AtLeastOnce | Self::Transactional => OnLapse::Rerun,
        }
    }
}

/// The bounds of the search. Crashes, pauses, clock ticks, deliveries and store restarts are unbounded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// The number of executors; 3 at most.
    pub executors: usize,
    /// The total number of attempts; 6 at most.
    pub nonces: u8,
    /// The number of settlements and deletions by the operator; 2 at most.
    pub operator_acts_max: usize,
    /// How often the retention of a record may end.
    pub forgets_max: u8,
    /// The `attempts_max` of every claim.
    pub attempts_max: u32,
    /// The highest attempt number explored: delayed claims of released attempts could increment it without end.
    pub attempts_explored: u8,
    /// Whether the last attempt may send a different request under the same key.
    pub mismatch: bool,
    /// Whether a handler may declare itself retryable after its effect.
    pub declared: bool,
}

/// The length of the executor array of a state.
pub(crate) const EXECUTORS_MAX: usize = 3;

impl Bounds {
    /// Two executors: takes seconds, for every change. Declared retries are explored in at most once only.
    pub const fn two(mode: Mode) -> Self {
        Self {
            executors: 2,
            nonces: 3,
            operator_acts_max: 1,
            forgets_max: 1,
            attempts_max: 2,
            attempts_explored: 3,
            mismatch: true,
            declared: matches!(mode, Mode::AtMostOnce),
        }
    }

    /// Three executors: takes minutes, before a release.
    pub const fn three(mode: Mode) -> Self {
        Self { executors: 3, nonces: 4, attempts_max: 3, attempts_explored: 4, ..Self::two(mode) }
    }
}
