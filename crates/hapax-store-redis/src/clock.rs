//! [`ServerTime`]: what the server's clock can show at most by now.
//!
//! It is for what a server need not be asked for again: how much longer it answers with an outcome. Whether a lease has
//! lapsed is never judged by it.

use std::time::Instant;

use hapax_core::Timestamp;
use parking_lot::Mutex;

/// The server's time when it was last asked for, and how long ago that was.
#[derive(Debug)]
pub(crate) struct ServerTime(Mutex<(Timestamp, Instant)>);

impl ServerTime {
    pub(crate) fn new() -> Self {
        Self(Mutex::new((Timestamp::default(), Instant::now())))
    }

    /// The server showed `time` in its answer to what was sent at `sent_at`.
    pub(crate) fn set(&self, time: Timestamp, sent_at: Instant) {
        *self.0.lock() = (time, sent_at);
    }

    /// A moment that the server's clock has not passed, unless somebody set it.
    pub(crate) fn at_most(&self) -> Timestamp {
        let (time, sent_at) = *self.0.lock();
        time.after(sent_at.elapsed())
    }
}
