//! A progress line on stderr, if stderr is a terminal.

use std::fmt::Display;
use std::future::Future;
use std::io::{self, IsTerminal, Write};
use std::pin::pin;
use std::time::{Duration, Instant};

/// The interval of updates. Shorter work shows no line.
const EVERY: Duration = Duration::from_secs(1);

/// A line that is overwritten by each update.
pub(crate) struct Progress {
    out: Option<Box<dyn Write + Send>>,
    is_shown: bool,
}

impl Progress {
    /// Writes to stderr if it is a terminal.
    pub(crate) fn new() -> Self {
        let stderr = io::stderr();
        if stderr.is_terminal() { Self::to(stderr) } else { Self::unseen() }
    }

    /// Writes nothing, as for output that is printed page by page.
    pub(crate) fn unseen() -> Self {
        Self { out: None, is_shown: false }
    }

    fn to(out: impl Write + Send + 'static) -> Self {
        Self { out: Some(Box::new(out)), is_shown: false }
    }

    /// Updates the line.
    pub(crate) fn show(&mut self, text: impl Display) {
        if let Some(out) = &mut self.out {
            self.is_shown = true;
            // A closed terminal does not stop the work.
            let _ = write!(out, "\r{text}").and_then(|()| out.flush());
        }
    }

    /// Waits for `work` and updates the line meanwhile.
    pub(crate) async fn during<T>(mut self, what: impl Display, work: impl Future<Output = T>) -> T {
        let (mut work, started) = (pin!(work), Instant::now());
        loop {
            match tokio::time::timeout(EVERY, &mut work).await {
                Ok(done) => return done,
                Err(_) => self.show(format_args!("{what}: {}s so far", started.elapsed().as_secs())),
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
