//! Counts test cases from the summary lines of `cargo nextest` and `cargo test`.

use std::fmt;

/// Numbers of passed, failed and skipped test cases.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tally {
    passed: u64,
    failed: u64,
    skipped: u64,
    summary_lines: u64,
}

impl Tally {
    /// Reads one line of a runner's output; lines other than summaries are ignored.
    pub(crate) fn read(&mut self, line: &str) {
        // Nextest indents its summary, and also the output of a failed test, which may contain a `test result:`.
        let counts = if line.trim_start().starts_with("Summary [") {
            line.split_once(" run: ").map(|(_, counts)| counts)
        } else if let Some(result) = line.strip_prefix("test result: ") {
            result.split_once(". ").map(|(_, counts)| counts)
        } else {
            None
        };
        if let Some(counts) = counts {
            self.summary_lines += 1;
            counts.split([',', ';']).for_each(|count| self.add(count.trim()));
        }
    }

    /// The number of summary lines: zero means that the runner's output was not recognised.
    pub(crate) fn summary_lines(&self) -> u64 {
        self.summary_lines
    }

    fn add(&mut self, count: &str) {
        let Some((number, status)) = count.split_once(' ') else { return };
        let Ok(number) = number.parse::<u64>() else { return };
        // Nextest adds remarks such as `12 passed (1 slow)`.
        let status = status.split(" (").next().unwrap_or(status);
        match status {
            "passed" => self.passed += number,
            "failed" | "timed out" | "exec failed" => self.failed += number,
            "skipped" | "ignored" => self.skipped += number,
            _ => {}
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        match self.skipped {
            0 => Ok(()),
            skipped => write!(f, ", {skipped} skipped"),
        }
    }
}

#[cfg(test)]
mod tests;
