//! [`Entry`]: one call of this process in the journal, and what its end means there.

use std::sync::Arc;

use super::frame::Event;
use super::{Journal, OpenCallState, blocking};
use crate::error::{Error, Limit, UncertainCause};
use crate::problem::RESULT_UNAVAILABLE;
use crate::response::Response;
use crate::retry;

/// A call of this process in the journal. Dropped without its end, the call stays open.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(super) journal: Journal,
    pub(super) id: u64,
    /// Whether the call was begun before, so that its answer may have been lost.
    pub(super) is_resumed: bool,
}

impl Entry {
    /// What this result of the call means for the entry.
    pub(crate) fn end_of(&self, result: &Result<Response, Error>) -> End {
        end(result, self.is_resumed)
    }

    /// Records the end of the call, without waiting for the disk: where it is lost, the call is made again with the same key.
    /// So it is where the end cannot be written, which is logged only, since the call has its answer.
    pub(crate) async fn record(self, end: End) {
        let (shared, id) = (Arc::clone(&self.journal.shared), self.id);
        let written = blocking(move || {
            let mut state = shared.state.lock();
            match end {
                End::Open => Ok(()),
                End::Closed => state.close(id).map(|_frame| ()),
                End::Uncertain => {
                    let Some(call) = state.calls.get_mut(&id) else { return Ok(()) };
                    call.is_uncertain = true;
                    state.append(&Event::Uncertain { id }, &[]).map(|_size| ())
                }
            }
        });
        if let Err(error) = written.await {
            tracing::warn!(%error, "the end of a call was not recorded; it will be made again");
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if let Some(call) = self.journal.shared.state.lock().calls.get_mut(&self.id) {
            call.running -= 1;
        }
    }
}

/// What the end of a call means for its entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// It has a final answer, or a definite refusal.
    Closed,
    /// It is not sent again by itself.
    Uncertain,
    /// It is resumed.
    Open,
}

impl End {
    /// The state of the call in the journal afterwards.
    pub(crate) fn state(self) -> Option<OpenCallState> {
        match self {
            Self::Closed => None,
            Self::Uncertain => Some(OpenCallState::Uncertain),
            Self::Open => Some(OpenCallState::Open),
        }
    }
}

fn end(result: &Result<Response, Error>, is_resumed: bool) -> End {
    match result {
        // An earlier attempt may have had the effect, and the journal has no credentials: what a wrong set-up of the process
        // that resumes is answered must not end its calls.
        Ok(response) if is_resumed && retry::is_refused_in_front(response.status(), response.headers()) => {
            End::Open
        }
        Err(Error::Uncertain { cause: UncertainCause::Server | UncertainCause::Lifetime, .. })
        | Err(Error::Exhausted { limit: Limit::Told, .. }) => End::Uncertain,
        // The record is gone, and an attempt of another process may have been the one that it was about.
        Err(Error::Refused { problem, .. }) if problem.code() == "key-expired" => End::Uncertain,
        Err(Error::Refused { problem, .. }) if is_resumed && problem.code() != RESULT_UNAVAILABLE => {
            End::Open
        }
        Err(Error::Mismatch { .. }) if is_resumed => End::Uncertain,
        // What this HTTP client does not send, an earlier one may have sent.
        Err(Error::Request(_)) if is_resumed => End::Open,
        Err(
            Error::Uncertain { .. } | Error::Exhausted { .. } | Error::InProgress { .. } | Error::Journal(_),
        ) => End::Open,
        _ => End::Closed,
    }
}
