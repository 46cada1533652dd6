//! A deadline that is moved often and seldom reached.
//!
//! Moving it writes down a moment and touches no timer: the timer that is set already goes off too early, looks again
//! and is set anew. So a connection that is used all the time costs the timers nothing.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// When to give up; never, until it is set.
#[derive(Debug, Default)]
pub(super) struct Deadline {
    due: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Deadline {
    /// Gives up this long from now.
    pub(super) fn within(&mut self, span: Duration) {
        self.due = Instant::now().checked_add(span);
    }

    /// Does not give up.
    pub(super) fn clear(&mut self) {
        self.due = None;
    }

    pub(super) fn is_set(&self) -> bool {
        self.due.is_some()
    }

    /// Ready once the deadline has passed. To be asked when there is nothing else to do.
    pub(super) fn poll_passed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
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
