//! Settlements: the stored outcome, and texts about the consequences.

use std::time::Duration;

use hapax::http::is_http_operation;
use hapax_core::{Class, Format, Recorded, State, Verdict};

use crate::failure::{Code, Failure};
use crate::time::brief;
use crate::view::{ClassView, format_name};

/// The decision of an operator about an uncertain record.
#[derive(Debug)]
pub enum Decision {
    /// It happened.
    Applied {
        /// The outcome that is stored.
        recorded: Recorded,
        /// How long retries receive the result. None for the retention of the record's route.
        retention: Option<Duration>,
    },
    /// It did not happen.
    NotApplied,
}

impl Decision {
    /// The verdict, with `usual` as the retention if the decision has none.
    pub fn verdict(self, usual: Duration) -> Verdict {
        match self {
            Self::Applied { recorded, retention } => {
                Verdict::Applied { recorded, retention: retention.unwrap_or(usual) }
            }
            Self::NotApplied => Verdict::NotApplied,
        }
    }
}

/// The outcome of a record that is settled as applied. Without a payload, retries learn that it happened, but receive no
/// result.
pub fn recorded(class: Class, format: Format, payload: Option<Vec<u8>>) -> Result<Recorded, Failure> {
    match payload {
        None => Ok(Recorded::new(class, Format::NOT_KEPT, Vec::new())),
        Some(payload) if format == Format::FUNCTION => {
            Ok(Recorded::new(class, format, checked_json(payload)?))
        }
        Some(payload) => Ok(Recorded::new(class, format, payload)),
    }
}

/// Checks that the bytes are JSON: callers cannot decode anything else.
pub fn checked_json(bytes: Vec<u8>) -> Result<Vec<u8>, Failure> {
    match serde_json::from_slice::<serde::de::IgnoredAny>(&bytes) {
        Ok(_) => Ok(bytes),
        Err(error) => Err(Failure::new(Code::InputInvalid, "the result is not JSON")
            .because(error)
            .hint("a text is JSON only in double quotes, such as '\"done\"'")),
    }
}

/// The consequence of a settlement.
pub fn consequence_of(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Applied { recorded, retention } if recorded.format == Format::NOT_KEPT => format!(
            "will be settled as applied, without a result: for {} retries learn that it happened, \
             but receive no result",
            brief(*retention)
        ),
        Verdict::Applied { recorded, retention } => format!(
            "will be settled as applied: for {} retries are answered with this {} ({}, {} bytes)",
            brief(*retention),
            ClassView::from(recorded.class).name(),
            format_name(recorded.format),
            recorded.payload.len()
        ),
        Verdict::NotApplied => {
            "will be settled as not applied: the key becomes free and the next request with it \
             RUNS THE OPERATION; an owner that is still alive can no longer record its result"
                .to_owned()
        }
    }
}

/// A warning if retries of this operation cannot read the result.
pub fn caution(operation: &str, verdict: &Verdict) -> Option<&'static str> {
    let Verdict::Applied { recorded, .. } = verdict else { return None };
    match (is_http_operation(operation), recorded.format) {
        (_, Format::NOT_KEPT) | (true, Format::HTTP) => None,
        (true, _) => Some(
            "it looks like the record of an HTTP request, which cannot be answered with this: retries would learn \
             that it happened, but receive no result; give an answer with --status instead",
        ),
        (false, Format::HTTP) => Some(
            "it does not look like the record of an HTTP request: a function cannot read an HTTP answer, and its \
             retries would learn that it happened, but receive no result",
        ),
        (false, _) => None,
    }
}

/// The consequence of deleting a record in this state.
pub fn consequence_of_deleting(state: State) -> &'static str {
    match state {
        State::Uncertain => {
            "will be deleted although it is unknown whether the operation happened: \
             the next request with the key RUNS THE OPERATION, perhaps for the second time"
        }
        State::Completed | State::Failed => {
            "will be deleted with its stored result: the next request with the key RUNS THE OPERATION AGAIN"
        }
        State::Released | State::InProgress => "will be deleted",
    }
}

/// The settlement in words.
pub const fn done(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Applied { .. } => "settled as applied",
        Verdict::NotApplied => "settled as not applied",
    }
}

#[cfg(test)]
mod tests;
