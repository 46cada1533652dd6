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
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;

    #[derive(Clone, Default)]
    struct Seen(Arc<Mutex<Vec<u8>>>);

    impl Write for Seen {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Seen {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().clone()).unwrap()
        }
    }

    #[test]
    fn a_line_is_written_over_and_ended() {
        let seen = Seen::default();
        let mut progress = Progress::to(seen.clone());
        progress.show("1 record so far");
        progress.show("2 records so far");
        drop(progress);
        assert_eq!(seen.text(), "\r1 record so far\r2 records so far\n");
        drop(Progress::to(seen.clone()));
        assert!(seen.text().ends_with("far\n"), "nothing told, nothing ended");
    }

    #[tokio::test]
    async fn whoever_waits_is_told_that_it_goes_on() {
        let seen = Seen::default();
        let (told, watched) = (seen.clone(), seen.clone());
        let until_told = async move {
            while told.text().is_empty() {
                tokio::task::yield_now().await;
            }
            "done"
        };
        assert_eq!(Progress::to(watched).during("reading", until_told).await, "done");
        assert!(
            seen.text().starts_with("\rreading: ") && seen.text().ends_with("so far\n"),
            "{}",
            seen.text()
        );
    }
}
