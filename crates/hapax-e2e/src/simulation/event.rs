//! [`Event`]: what happens in a simulated world, and its line in a timeline.

use std::fmt;

use hapax::OnceError;
use hapax_core::OnLapse;

/// Numbers in the order of first appearance, so that two runs of one seed number them alike.
macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(pub u32);

        impl $name {
            /// Its index in the list of its kind.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

name! {
    /// One incarnation of an executor; a restarted one is another process.
    ProcessId, "process "
}
name! {
    /// One operation's key.
    KeyId, "key "
}
name! {
    /// One call of `once()`.
    CallId, "call "
}
name! {
    /// One run of a handler; also the value that it makes.
    RunId, "run "
}
name! {
    /// One nonce.
    AttemptId, "attempt "
}

/// The kinds of fault that are counted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FaultKind {
    /// The call fails before it is applied.
    Error,
    /// The call is applied and its answer is lost.
    Lost,
    /// The call, the handler or the whole process is delayed for longer than a lease.
    Delay,
    /// The waiting caller is dropped.
    Drop,
    /// The store or the handler panics.
    Panic,
    /// The process dies.
    Crash,
    /// A clock jumps forward by more than a lease.
    ClockStep,
}

impl FaultKind {
    /// Every kind.
    pub const ALL: [Self; 7] =
        [Self::Error, Self::Lost, Self::Delay, Self::Drop, Self::Panic, Self::Crash, Self::ClockStep];

    /// A column's heading.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Lost => "lost",
            Self::Delay => "delay",
            Self::Drop => "drop",
            Self::Panic => "panic",
            Self::Crash => "crash",
            Self::ClockStep => "step",
        }
    }
}

/// Where a fault is injected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultSite {
    /// In a store call, on the process's side. It can keep the process from renewing and recording.
    Call,
    /// Between the process and the store; so can this.
    Wire,
    /// In a handler. Leases are renewed all the same.
    Handler,
    /// At the callers.
    Callers,
    /// In the process as a whole.
    Process,
}

/// How a handler ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunEnd {
    /// With a value.
    Value,
    /// With an error that asks for a retry.
    Retry,
    /// With an error that is final.
    Final,
    /// With an unknown outcome.
    Unknown,
    /// With a panic.
    Panic,
}

/// What a call returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallResult {
    /// Its own run's value.
    Ran {
        /// The value.
        value: RunId,
        /// Whether it is marked as recorded.
        recorded: bool,
    },
    /// The value of an earlier run.
    Replayed(RunId),
    /// Its own run's error.
    Failed(RunId),
    /// The final error of an earlier run.
    PreviouslyFailed(RunId),
    /// Another attempt runs.
    InProgress,
    /// The key was used with another fingerprint.
    Mismatch,
    /// The outcome is unknown.
    Uncertain,
    /// Another attempt took over.
    Superseded,
    /// Its deadline passed.
    Deadline,
    /// The process is shutting down.
    Draining,
    /// The store could not take the claim.
    Store,
    /// A result that no simulated call should have.
    Other,
}

impl CallResult {
    /// The result of `once()`.
    pub fn of(result: &Result<hapax::Done<u32>, OnceError<RunError>>) -> Self {
        match result {
            Ok(done) if done.replayed => Self::Replayed(RunId(done.value)),
            Ok(done) => Self::Ran { value: RunId(done.value), recorded: done.recorded },
            Err(OnceError::Failed(oops)) => Self::Failed(oops.0),
            Err(OnceError::PreviouslyFailed(stored)) => match stored.message.parse() {
                Ok(run) => Self::PreviouslyFailed(RunId(run)),
                Err(_) => Self::Other,
            },
            Err(OnceError::InProgress { .. }) => Self::InProgress,
            Err(OnceError::Mismatch) => Self::Mismatch,
            Err(OnceError::Uncertain { .. }) => Self::Uncertain,
            Err(OnceError::Superseded { .. }) => Self::Superseded,
            Err(OnceError::Deadline { .. }) => Self::Deadline,
            Err(OnceError::Draining) => Self::Draining,
            Err(OnceError::Store(_)) => Self::Store,
            Err(_) => Self::Other,
        }
    }

    /// Whether it rules out that the call executed anything.
    pub const fn denies_execution(self) -> bool {
        matches!(self, Self::InProgress | Self::Mismatch | Self::Draining | Self::Store)
    }

    /// The earlier run whose outcome this repeats.
    pub const fn repeated(self) -> Option<RunId> {
        match self {
            Self::Replayed(run) | Self::PreviouslyFailed(run) => Some(run),
            _ => None,
        }
    }

    /// The result in a word or two.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Ran { recorded: true, .. } => "ran",
            Self::Ran { recorded: false, .. } => "ran unrecorded",
            Self::Replayed(_) => "replayed",
            Self::Failed(_) => "failed",
            Self::PreviouslyFailed(_) => "failed before",
            Self::InProgress => "in progress",
            Self::Mismatch => "mismatch",
            Self::Uncertain => "uncertain",
            Self::Superseded => "superseded",
            Self::Deadline => "deadline",
            Self::Draining => "draining",
            Self::Store => "store error",
            Self::Other => "unexpected",
        }
    }
}

/// The error of a simulated handler: the run that made it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunError(pub RunId);

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.0)
    }
}

/// What the store did for one call that reached it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StoreEffect {
    /// A claim was given.
    Acquired {
        /// The attempt's number.
        number: u32,
        /// The lease.
        lease_ms: u64,
        /// The retention of the record if it never finishes.
        uncertain_ms: u64,
        /// What the claim does with a lapsed one.
        on_lapse: OnLapse,
        /// The input.
        input: u8,
    },
    /// A claim found one in progress.
    Busy,
    /// A claim had another fingerprint.
    Mismatch {
        /// Its input.
        input: u8,
    },
    /// A claim found an outcome.
    Replay {
        /// The outcome.
        value: RunId,
        /// The claim's input.
        input: u8,
    },
    /// A claim found an uncertain record of this attempt.
    Uncertain {
        /// The attempt in doubt.
        holder: AttemptId,
    },
    /// A lease was renewed.
    Renewed {
        /// The lease from now on.
        lease_ms: u64,
    },
    /// An outcome was pinned, now or by the same call before.
    Pinned {
        /// The outcome.
        value: RunId,
        /// Its retention.
        retention_ms: u64,
    },
    /// The key was freed, now or by the same call before.
    Released,
    /// The owner abandoned its claim.
    Abandoned,
    /// The call came from an attempt that does not hold the record.
    Lost,
    /// A record was settled; the attempt of this effect is the settlement's own nonce.
    Settled {
        /// The attempt that was in doubt.
        of: AttemptId,
        /// Its value, if it was settled as applied.
        value: Option<RunId>,
        /// How long the outcome is kept.
        retention_ms: u64,
    },
    /// A settlement was refused.
    NotSettled,
}

/// One event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Event {
    Called { call: CallId, process: ProcessId, key: KeyId, input: u8, patience_ms: u64, has_deadline: bool },
    Answered { call: CallId, answer: CallResult },
    Dropped { call: CallId },
    Started { run: RunId, call: CallId, process: ProcessId, key: KeyId, attempt: AttemptId, number: u32 },
    TookEffect { run: RunId },
    Ended { run: RunId, ending: RunEnd },
    Applied { process: ProcessId, key: KeyId, attempt: AttemptId, step: StoreEffect },
    Swept { process: ProcessId, expired: u64, dropped: u64 },
    FaultInjected { process: ProcessId, kind: FaultKind, place: FaultSite },
    Opened { process: ProcessId },
    Crashed { process: ProcessId },
    Draining { process: ProcessId },
    Paused { process: ProcessId, pause_ms: u64 },
    Stepped { store_ms: u64 },
    Healed,
}

/// An event and its time, on the store's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceEntry {
    /// Milliseconds since the simulation began.
    pub at_ms: u64,
    /// The event.
    pub event: Event,
}

impl fmt::Display for TraceEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>9.3} s  {}", self.at_ms as f64 / 1000.0, self.event)
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Called { call, process, key, input, patience_ms, .. } => {
                write!(f, "{process}: {call} calls {key}, input {input}, waits up to {patience_ms} ms")
            }
            Self::Answered { call, answer } => {
                write!(f, "{call} returns: {}", answer.words())?;
                match answer {
                    CallResult::Ran { value, .. }
                    | CallResult::Replayed(value)
                    | CallResult::Failed(value)
                    | CallResult::PreviouslyFailed(value) => write!(f, " ({value})"),
                    _ => Ok(()),
                }
            }
            Self::Dropped { call } => write!(f, "{call} is dropped"),
            Self::Started { run, call, process, key, attempt, number } => {
                write!(f, "{process}: {run} starts for {call}, {key}, {attempt}, number {number}")
            }
            Self::TookEffect { run } => write!(f, "{run} takes effect"),
            Self::Ended { run, ending } => write!(f, "{run} ends: {ending:?}"),
            Self::Applied { process, key, attempt, step } => {
                write!(f, "store, for {process}: {key}, {attempt}: {step:?}")
            }
            Self::Swept { process, expired, dropped } => {
                write!(f, "store, for {process}: swept {expired} expired, {dropped} dropped")
            }
            Self::FaultInjected { process, kind, place } => {
                write!(f, "fault at {process}: {} ({place:?})", kind.name())
            }
            Self::Opened { process } => write!(f, "{process} begins"),
            Self::Crashed { process } => write!(f, "{process} dies"),
            Self::Draining { process } => write!(f, "{process} drains"),
            Self::Paused { process, pause_ms } => write!(f, "{process} pauses for {pause_ms} ms"),
            Self::Stepped { store_ms: 0 } => f.write_str("all clocks jump by more than a lease"),
            Self::Stepped { store_ms } => write!(f, "the store's clock jumps by {store_ms} ms"),
            Self::Healed => f.write_str("healed"),
        }
    }
}
