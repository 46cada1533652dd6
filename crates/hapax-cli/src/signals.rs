//! Signals of the operating system: shutdown and reload.

use std::io;

use crate::failure::{Code, Failure};

/// A signal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ProcessSignal {
    /// SIGTERM or SIGINT.
    Shutdown,
    /// SIGHUP.
    Reload,
}

/// Receives signals from its creation on: one that arrives while no task waits is not lost.
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

    /// Waits for the next signal.
    #[cfg(unix)]
    pub(crate) async fn next(&mut self) -> ProcessSignal {
        tokio::select! {
            _ = self.interrupt.recv() => ProcessSignal::Shutdown,
            _ = self.terminate.recv() => ProcessSignal::Shutdown,
            _ = self.hang_up.recv() => ProcessSignal::Reload,
        }
    }

    /// Waits for the next signal.
    #[cfg(not(unix))]
    pub(crate) async fn next(&mut self) -> ProcessSignal {
        // Without a handler, the default action of the signal ends the process.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        ProcessSignal::Shutdown
    }

    /// Waits for a shutdown signal.
    pub(crate) async fn shutdown(&mut self) {
        while self.next().await != ProcessSignal::Shutdown {}
    }
}
