//! What happens in a simulated world, one [`Event`] at a time, and how it reads as a story.

use std::fmt;

use hapax::OnceError;
use hapax_core::OnLapse;

/// Names things in the order in which they first appear, so that two runs of one seed name them alike.
macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(pub u32);

        impl $name {
            /// Its place in the list of its kind.
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
    /// One nonce, whoever chose it.
    AttemptId, "attempt "
}

/// The kinds of fault, as they are counted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// The call fails before it is applied.
    Error,
    /// The call is applied and its answer is lost.
    Lost,
    /// The call, the handler or the whole process rests for longer than a lease.
    Delay,
    /// Whoever waits is dropped.
    Drop,
    /// The store or the handler panics.
    Panic,
    /// The process dies.
    Crash,
    /// A clock jumps forward by more than a lease.
    Step,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 7] =
        [Self::Error, Self::Lost, Self::Delay, Self::Drop, Self::Panic, Self::Crash, Self::Step];

    /// A column's heading.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Lost => "lost",
            Self::Delay => "delay",
            Self::Drop => "drop",
            Self::Panic => "panic",
            Self::Crash => "crash",
            Self::Step => "step",
        }
    }
}

/// Where a fault strikes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// In a store call, on the process's side. It can keep the process from renewing and recording.
    Call,
    /// On the way to the store or back; so can this.
    Wire,
    /// In a handler. Leases are renewed all the same.
    Handler,
    /// At the callers.
    Callers,
    /// At the process as a whole.
    Process,
}

/// How a handler ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// With a value.
    Value,
    /// With an error that asks for a retry.
    Retry,
    /// With an error that is final.
    Final,
    /// Not knowing whether it happened.
    Unknown,
    /// With a panic.
    Panic,
}

/// What a caller was told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Its own run's value.
    Ran {
        /// The value.
        value: RunId,
        /// Whether it is said to be stored.
        recorded: bool,
    },
    /// The value of an earlier run.
    Replayed(RunId),
    /// Its own run's error.
    Failed(RunId),
    /// The final error of an earlier run.
    PreviouslyFailed(RunId),
    /// Somebody else is at it.
    InProgress,
    /// The key was used for something else.
    Mismatch,
    /// Nobody knows.
    Uncertain,
    /// Another attempt took over.
    Superseded,
    /// Its deadline passed.
    Deadline,
    /// The process is shutting down.
    Draining,
    /// The store could not take the claim.
    Store,
    /// Something that no simulated caller should ever hear.
    Other,
}

impl Answer {
    /// What `once()` answered.
    pub fn of(result: &Result<hapax::Done<u32>, OnceError<Oops>>) -> Self {
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

    /// Whether it tells the caller that its call executed nothing.
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

    /// The answer in a word or two.
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
            Self::Other => "something else",
        }
    }
}

/// The error of a simulated handler: the run that made it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Oops(pub RunId);

impl fmt::Display for Oops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.0)
    }
}

/// What the store did for one call that reached it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// A claim was given.
    Acquired {
        /// The attempt's number.
        number: u32,
        /// How long it is believed.
        lease_ms: u64,
        /// How long it is kept if it never finishes.
        uncertain_ms: u64,
        /// What the claimant makes of a lapsed claim.
        on_lapse: OnLapse,
        /// What was asked for.
        input: u8,
    },
    /// A claim found another one at work.
    Busy,
    /// A claim asked for something else.
    Mismatch {
        /// What it asked for.
        input: u8,
    },
    /// A claim found an outcome.
    Replay {
        /// The outcome.
        value: RunId,
        /// What the claimant asked for.
        input: u8,
    },
    /// A claim found that nobody knows about this attempt.
    Uncertain {
        /// The attempt in doubt.
        holder: AttemptId,
    },
    /// A lease was renewed.
    Renewed {
        /// How long it is believed from here.
        lease_ms: u64,
    },
    /// An outcome was pinned, now or by the same call before.
    Pinned {
        /// The outcome.
        value: RunId,
        /// For how long.
        retention_ms: u64,
    },
    /// The key was freed, now or by the same call before.
    Released,
    /// The owner gave up knowing.
    Abandoned,
    /// The call came from an attempt that does not hold the record.
    Lost,
    /// Somebody settled; the attempt of this step is the settlement's own nonce.
    Settled {
        /// The attempt that was in doubt.
        of: AttemptId,
        /// What it made, if it is said to have happened.
        value: Option<RunId>,
        /// How long the outcome is kept.
        retention_ms: u64,
    },
    /// A settlement was refused.
    NotSettled,
}

/// One thing that happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Event {
    Asked { call: CallId, process: ProcessId, key: KeyId, input: u8, patience_ms: u64, has_deadline: bool },
    Answered { call: CallId, answer: Answer },
    Gone { call: CallId },
    Started { run: RunId, call: CallId, process: ProcessId, key: KeyId, attempt: AttemptId, number: u32 },
    Happened { run: RunId },
    Ended { run: RunId, ending: Ending },
    Applied { process: ProcessId, key: KeyId, attempt: AttemptId, step: Step },
    Swept { process: ProcessId, expired: u64, dropped: u64 },
    Struck { process: ProcessId, kind: Kind, place: Place },
    Opened { process: ProcessId },
    Crashed { process: ProcessId },
    Draining { process: ProcessId },
    Paused { process: ProcessId, pause_ms: u64 },
    Stepped { store_ms: u64 },
    Healed,
}

/// An event and when it was, on the store's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Milliseconds since the simulation began.
    pub at_ms: u64,
    /// What happened.
    pub event: Event,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>9.3} s  {}", self.at_ms as f64 / 1000.0, self.event)
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Asked { call, process, key, input, patience_ms, .. } => {
                write!(f, "{process}: {call} asks for {key}, input {input}, waits up to {patience_ms} ms")
            }
            Self::Answered { call, answer } => {
                write!(f, "{call} is answered: {}", answer.words())?;
                match answer {
                    Answer::Ran { value, .. }
                    | Answer::Replayed(value)
                    | Answer::Failed(value)
                    | Answer::PreviouslyFailed(value) => write!(f, " ({value})"),
                    _ => Ok(()),
                }
            }
            Self::Gone { call } => write!(f, "{call} is dropped"),
            Self::Started { run, call, process, key, attempt, number } => {
                write!(f, "{process}: {run} starts for {call}, {key}, {attempt}, number {number}")
            }
            Self::Happened { run } => write!(f, "the effect of {run} happens"),
            Self::Ended { run, ending } => write!(f, "{run} ends: {ending:?}"),
            Self::Applied { process, key, attempt, step } => {
                write!(f, "store, for {process}: {key}, {attempt}: {step:?}")
            }
            Self::Swept { process, expired, dropped } => {
                write!(f, "store, for {process}: swept {expired} expired, {dropped} dropped")
            }
            Self::Struck { process, kind, place } => {
                write!(f, "fault at {process}: {} ({place:?})", kind.name())
            }
            Self::Opened { process } => write!(f, "{process} begins"),
            Self::Crashed { process } => write!(f, "{process} dies"),
            Self::Draining { process } => write!(f, "{process} drains"),
            Self::Paused { process, pause_ms } => write!(f, "{process} pauses for {pause_ms} ms"),
            Self::Stepped { store_ms: 0 } => f.write_str("everything stands still for more than a lease"),
            Self::Stepped { store_ms } => write!(f, "the store's clock jumps by {store_ms} ms"),
            Self::Healed => f.write_str("from here on nothing goes wrong"),
        }
    }
}
