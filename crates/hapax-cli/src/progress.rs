//! A line on the terminal for people who wait; nothing where nobody watches.

use std::fmt::Display;
use std::future::Future;
use std::io::{self, IsTerminal, Write};
use std::pin::pin;
use std::time::{Duration, Instant};

/// How often the line changes. What takes less is over before anybody could read about it.
const EVERY: Duration = Duration::from_secs(1);

/// A line on stderr that is written over.
pub(crate) struct Progress {
    out: Option<Box<dyn Write + Send>>,
    is_shown: bool,
}

impl Progress {
    /// For whoever watches stderr, if anybody does.
    pub(crate) fn new() -> Self {
        let stderr = io::stderr();
        if stderr.is_terminal() { Self::to(stderr) } else { Self::unseen() }
    }

    /// For nobody: what is told would stand in the midst of what is printed.
    pub(crate) fn unseen() -> Self {
        Self { out: None, is_shown: false }
    }

    fn to(out: impl Write + Send + 'static) -> Self {
        Self { out: Some(Box::new(out)), is_shown: false }
    }

    /// Tells how far it is.
    pub(crate) fn show(&mut self, text: impl Display) {
        if let Some(out) = &mut self.out {
            self.is_shown = true;
            // A terminal that is gone is no reason to stop.
            let _ = write!(out, "\r{text}").and_then(|()| out.flush());
        }
    }

    /// Waits for `work`, and tells meanwhile that it goes on.
    pub(crate) async fn during<T>(mut self, what: impl Display, work: impl Future<Output = T>) -> T {
        let (mut work, begun) = (pin!(work), Instant::now());
        loop {
            match tokio::time::timeout(EVERY, &mut work).await {
                Ok(done) => return done,
                Err(_) => self.show(format_args!("{what}: {}s so far", begun.elapsed().as_secs())),
            }
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(out) = self.out.as_mut().filter(|_| self.is_shown) {
            let _ = writeln!(out);
        }
    }
}

#[cfg(test)]
mod tests;
