//! States, reasons and classes as JSON strings.

use hapax_core::{Class, Reason, State};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The state of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = State)]
pub enum StateView {
    /// An owner has a valid claim.
    InProgress,
    /// A pinned outcome of class success.
    Completed,
    /// A pinned outcome of class error.
    Failed,
    /// It is unknown whether the operation happened.
    Uncertain,
    /// The key is free again.
    Released,
}

impl From<State> for StateView {
    fn from(state: State) -> Self {
        match state {
            State::InProgress => Self::InProgress,
            State::Completed => Self::Completed,
            State::Failed => Self::Failed,
            State::Uncertain => Self::Uncertain,
            State::Released => Self::Released,
        }
    }
}

impl From<StateView> for State {
    fn from(state: StateView) -> Self {
        match state {
            StateView::InProgress => Self::InProgress,
            StateView::Completed => Self::Completed,
            StateView::Failed => Self::Failed,
            StateView::Uncertain => Self::Uncertain,
            StateView::Released => Self::Released,
        }
    }
}

/// Why it is unknown whether the operation happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Reason)]
pub enum ReasonView {
    /// The lease ended without a renewal or an outcome.
    Lapsed,
    /// The handler panicked.
    Panicked,
    /// The process ended before the operation did.
    Restarted,
    /// The handler declared the outcome unknown.
    Declared,
    /// The connection to the service broke before the response.
    Reset,
    /// The service did not respond in time.
    TimedOut,
    /// The response of the service was incomplete.
    Truncated,
    /// The status of the response leaves the outcome unknown.
    Answered,
    /// The service failed without a usable response.
    NoAnswer,
}

impl From<Reason> for ReasonView {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Lapsed => Self::Lapsed,
            Reason::Panicked => Self::Panicked,
            Reason::Restarted => Self::Restarted,
            Reason::Declared => Self::Declared,
            Reason::Reset => Self::Reset,
            Reason::TimedOut => Self::TimedOut,
            Reason::Truncated => Self::Truncated,
            Reason::Answered => Self::Answered,
            Reason::NoAnswer => Self::NoAnswer,
        }
    }
}

impl From<ReasonView> for Reason {
    fn from(reason: ReasonView) -> Self {
        match reason {
            ReasonView::Lapsed => Self::Lapsed,
            ReasonView::Panicked => Self::Panicked,
            ReasonView::Restarted => Self::Restarted,
            ReasonView::Declared => Self::Declared,
            ReasonView::Reset => Self::Reset,
            ReasonView::TimedOut => Self::TimedOut,
            ReasonView::Truncated => Self::Truncated,
            ReasonView::Answered => Self::Answered,
            ReasonView::NoAnswer => Self::NoAnswer,
        }
    }
}

/// Whether an outcome is a success or an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Class)]
pub enum ClassView {
    /// The operation succeeded.
    Success,
    /// The operation failed.
    Error,
}

impl ClassView {
    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Error => "error",
        }
    }
}

impl From<Class> for ClassView {
    fn from(class: Class) -> Self {
        match class {
            Class::Success => Self::Success,
            Class::Error => Self::Error,
        }
    }
}

impl From<ClassView> for Class {
    fn from(class: ClassView) -> Self {
        match class {
            ClassView::Success => Self::Success,
            ClassView::Error => Self::Error,
        }
    }
}
