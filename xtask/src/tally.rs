//! Counts test cases from the closing lines of `cargo nextest` and `cargo test`.

use std::fmt;

/// How many test cases passed, failed and were skipped so far.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tally {
    passed: u64,
    failed: u64,
    skipped: u64,
    closing_lines: u64,
}

impl Tally {
    /// Takes in one line of a runner's output; everything but closing lines is passed over.
    pub(crate) fn read(&mut self, line: &str) {
        // Nextest sets its summary in by some spaces, and by others the output of a failed test, which may hold
        // a `test result:` of its own.
        let counts = if line.trim_start().starts_with("Summary [") {
            line.split_once(" run: ").map(|(_, counts)| counts)
        } else if let Some(result) = line.strip_prefix("test result: ") {
            result.split_once(". ").map(|(_, counts)| counts)
        } else {
            None
        };
        if let Some(counts) = counts {
            self.closing_lines += 1;
            counts.split([',', ';']).for_each(|count| self.add(count.trim()));
        }
    }

    /// How many closing lines were seen: none means the runner's output was not understood.
    pub(crate) fn closing_lines(&self) -> u64 {
        self.closing_lines
    }

    fn add(&mut self, count: &str) {
        let Some((number, what)) = count.split_once(' ') else { return };
        let Ok(number) = number.parse::<u64>() else { return };
        // Nextest adds remarks such as `12 passed (1 slow)`.
        let what = what.split(" (").next().unwrap_or(what);
        match what {
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
