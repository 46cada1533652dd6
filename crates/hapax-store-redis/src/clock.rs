//! [`ServerTime`]: an upper estimate of the server's clock.
//!
//! Used to compute how much longer an outcome is kept without another round trip. It never decides whether a lease has
//! lapsed.

use std::time::Instant;

use hapax_core::Timestamp;
use parking_lot::Mutex;

/// The server's time when it was last read, and when that was.
#[derive(Debug)]
pub(crate) struct ServerTime(Mutex<(Timestamp, Instant)>);

impl ServerTime {
    pub(crate) fn new() -> Self {
        Self(Mutex::new((Timestamp::default(), Instant::now())))
    }

    /// Records `time` from the reply to a command sent at `sent_at`.
    pub(crate) fn set(&self, time: Timestamp, sent_at: Instant) {
        *self.0.lock() = (time, sent_at);
    }

    /// A time that the server's clock has not passed, unless its clock was adjusted.
    pub(crate) fn at_most(&self) -> Timestamp {
        let (time, sent_at) = *self.0.lock();
        time.after(sent_at.elapsed())
    }
}
