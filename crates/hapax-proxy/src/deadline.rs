//! A deadline that is moved often and seldom reached.
//!
//! Moving it stores an instant and touches no timer: a timer that is already set fires early, compares and is reset.
//! So a busy connection costs no timer operations.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// A deadline; none until it is set.
#[derive(Debug, Default)]
pub(crate) struct Deadline {
    due: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Deadline {
    /// Sets it to this long from now.
    pub(crate) fn set(&mut self, timeout: Duration) {
        self.due = Instant::now().checked_add(timeout);
    }

    pub(crate) fn clear(&mut self) {
        self.due = None;
    }

    pub(crate) fn is_set(&self) -> bool {
        self.due.is_some()
    }

    /// Ready once the deadline has passed. Polled last, when nothing else is ready.
    pub(crate) fn poll_passed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(due) = self.due else { return Poll::Pending };
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(due)));
        if timer.deadline() > due {
            timer.as_mut().reset(due);
        }
        while timer.as_mut().poll(cx).is_ready() {
            if Instant::now() >= due {
                return Poll::Ready(());
            }
            timer.as_mut().reset(due);
        }
        Poll::Pending
    }
}
