//! What a decision means, in words, and the result that it leaves behind.

use std::time::Duration;

use hapax::http::is_http_operation;
use hapax_core::{Class, Format, Recorded, State, Verdict};

use crate::failure::{Code, Failure};
use crate::time::brief;
use crate::view::{ClassView, format_name};

/// What a person decided about an uncertain record, as far as they said it.
#[derive(Debug)]
pub enum Decision {
    /// It happened.
    Applied {
        /// The outcome that is stored.
        recorded: Recorded,
        /// How long retries get the result. None: as long as the route of the record says.
        retention: Option<Duration>,
    },
    /// It did not happen.
    NotApplied,
}

impl Decision {
    /// The verdict, with `usual` for how long a result is kept where the decision does not say so.
    pub fn verdict(self, usual: Duration) -> Verdict {
        match self {
            Self::Applied { recorded, retention } => {
                Verdict::Applied { recorded, retention: retention.unwrap_or(usual) }
            }
            Self::NotApplied => Verdict::NotApplied,
        }
    }
}

/// The outcome of a record that was settled as applied. Without a payload retries learn that it happened, not what
/// it answered.
pub fn recorded(class: Class, format: Format, payload: Option<Vec<u8>>) -> Result<Recorded, Failure> {
    match payload {
        None => Ok(Recorded::new(class, Format::NOT_KEPT, Vec::new())),
        Some(payload) if format == Format::FUNCTION => {
            Ok(Recorded::new(class, format, checked_json(payload)?))
        }
        Some(payload) => Ok(Recorded::new(class, format, payload)),
    }
}

/// What was given as JSON: what is none would make the key useless to whoever decodes it.
pub fn checked_json(bytes: Vec<u8>) -> Result<Vec<u8>, Failure> {
    match serde_json::from_slice::<serde::de::IgnoredAny>(&bytes) {
        Ok(_) => Ok(bytes),
        Err(error) => Err(Failure::new(Code::InputInvalid, "the result is not JSON")
            .because(error)
            .hint("a text is JSON only in double quotes, such as '\"done\"'")),
    }
}

/// What settling so will do.
pub fn consequence_of(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Applied { recorded, retention } if recorded.format == Format::NOT_KEPT => format!(
            "will be settled as applied, without a result: for {} retries learn that it happened, \
             not what it answered",
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

/// What to know before settling a record of this operation so: whoever retries may not be able to read the result.
pub fn caution(operation: &str, verdict: &Verdict) -> Option<&'static str> {
    let Verdict::Applied { recorded, .. } = verdict else { return None };
    match (is_http_operation(operation), recorded.format) {
        (_, Format::NOT_KEPT) | (true, Format::HTTP) => None,
        (true, _) => Some(
            "it looks like the record of an HTTP request, which cannot be answered with this: retries would learn \
             that it happened, not what it answered; give an answer with --status instead",
        ),
        (false, Format::HTTP) => Some(
            "it does not look like the record of an HTTP request: a function cannot read an HTTP answer, its \
             retries would learn that it happened, not what it answered",
        ),
        (false, _) => None,
    }
}

/// What deleting a record in this state will do.
pub fn consequence_of_deleting(state: State) -> &'static str {
    match state {
        State::Uncertain => {
            "will be deleted although nobody knows whether the operation happened: \
             the next request with the key RUNS THE OPERATION, perhaps for the second time"
        }
        State::Completed | State::Failed => {
            "will be deleted with its stored result: the next request with the key RUNS THE OPERATION AGAIN"
        }
        State::Released | State::InProgress => "will be deleted",
    }
}

/// What was done, for reports.
pub const fn done(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Applied { .. } => "settled as applied",
        Verdict::NotApplied => "settled as not applied",
    }
}

#[cfg(test)]
mod tests;
