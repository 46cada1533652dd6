//! What the operating system asks of a process that runs for long: to end, or to read its configuration again.

use std::io;

use crate::failure::{Code, Failure};

/// What was asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Asked {
    /// SIGTERM or SIGINT.
    ToEnd,
    /// SIGHUP.
    ToReload,
}

/// Signals, from the moment this is made: one that comes while nobody waits is not lost.
#[derive(Debug)]
pub(crate) struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    hang_up: tokio::signal::unix::Signal,
}

impl Signals {
    pub(crate) fn new() -> Result<Self, Failure> {
        Self::listen().map_err(|error| Failure::new(Code::Failed, "cannot listen for signals").because(error))
    }

    #[cfg(unix)]
    fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    #[cfg(not(unix))]
    fn listen() -> io::Result<Self> {
        Ok(Self {})
    }

    /// The next one.
    #[cfg(unix)]
    pub(crate) async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.interrupt.recv() => Asked::ToEnd,
            _ = self.terminate.recv() => Asked::ToEnd,
            _ = self.hang_up.recv() => Asked::ToReload,
        }
    }

    /// The next one.
    #[cfg(not(unix))]
    pub(crate) async fn next(&mut self) -> Asked {
        // Without a way to be told, the process simply ends when it is ended.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        Asked::ToEnd
    }

    /// Waits until the process is asked to end.
    pub(crate) async fn end(&mut self) {
        while self.next().await != Asked::ToEnd {}
    }
}
