//! The words of the glossary as JSON has them, to be written and read back.

use hapax_core::{Class, Reason, State};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Where a record stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = State)]
pub enum StateView {
    /// Somebody holds the claim and is believed to be working.
    InProgress,
    /// A pinned outcome of class success.
    Completed,
    /// A pinned outcome of class error.
    Failed,
    /// Nobody knows whether the operation happened.
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

/// Why it is not known whether the operation happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Reason)]
pub enum ReasonView {
    /// The lease ended without a word from its owner.
    Lapsed,
    /// The handler panicked.
    Panicked,
    /// The process that ran it ended before it did.
    Restarted,
    /// The handler said that it does not know.
    Declared,
    /// The connection to the service broke off before its answer.
    Reset,
    /// The service did not answer in time.
    TimedOut,
    /// The answer of the service broke off before its end.
    Truncated,
    /// The status of the answer leaves it open.
    Answered,
    /// The service ended with an error instead of an answer that can be used.
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
    /// The operation did what was asked.
    Success,
    /// The operation ended with an error.
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
