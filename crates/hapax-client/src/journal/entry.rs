//! [`Entry`]: one call of this process in the journal, and what its end means there.

use std::sync::Arc;

use http::StatusCode;

use super::frame::Event;
use super::{Journal, blocking};
use crate::error::{Error, Limit, UncertainCause};
use crate::response::Response;

/// A call of this process in the journal. Dropped without its end, the call stays open.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(super) journal: Journal,
    pub(super) id: u64,
    /// Whether the journal continues the call, and not its caller.
    pub(super) is_resumed: bool,
}

impl Entry {
    /// Records the end of the call. A failure to write it is logged only: the call has its answer, and is made again later
    /// with the same key.
    pub(crate) async fn end(self, result: &Result<Response, Error>) {
        let (shared, id) = (Arc::clone(&self.journal.shared), self.id);
        let end = end(result, self.is_resumed);
        let written = blocking(move || {
            let mut state = shared.state.lock();
            match end {
                End::Open => Ok(()),
                End::Closed => state.close(id).map(|_frame| ()),
                End::Uncertain => {
                    let Some(call) = state.calls.get_mut(&id) else { return Ok(()) };
                    call.is_uncertain = true;
                    state.append(&Event::Uncertain { id }, &[])
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
enum End {
    /// It has a final answer, or a definite refusal.
    Closed,
    /// It is not sent again by itself.
    Uncertain,
    /// It is resumed.
    Open,
}

fn end(result: &Result<Response, Error>, is_resumed: bool) -> End {
    match result {
        // The journal has no credentials, so a wrong set-up of the process that resumes must not end its calls.
        Ok(response) if is_resumed && is_denied(response.status()) => End::Open,
        Err(Error::Uncertain { cause: UncertainCause::Server | UncertainCause::Lifetime, .. })
        | Err(Error::Exhausted { limit: Limit::Told, .. }) => End::Uncertain,
        // The record is gone, and an attempt of another process may have been the one that it was about.
        Err(Error::Refused { problem, .. }) if problem.code() == "key-expired" => End::Uncertain,
        Err(
            Error::Uncertain { .. } | Error::Exhausted { .. } | Error::InProgress { .. } | Error::Journal(_),
        ) => End::Open,
        _ => End::Closed,
    }
}

fn is_denied(status: StatusCode) -> bool {
    [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN, StatusCode::PROXY_AUTHENTICATION_REQUIRED]
        .contains(&status)
}
