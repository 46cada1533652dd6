//! The summary table of `cargo xtask test`: the result and duration of each step.

use std::fmt;
use std::time::Duration;

/// The result of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// It passed.
    Passed,
    /// It could not run; the reason names what is missing and how to install it.
    Skipped(String),
    /// It failed.
    Failed,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Passed => f.write_str("ok"),
            End::Skipped(reason) => write!(f, "skipped: {reason}"),
            End::Failed => f.write_str("FAILED"),
        }
    }
}

/// The steps run so far, in order.
#[derive(Debug, Default)]
pub(crate) struct Timetable {
    rows: Vec<(&'static str, End, Duration)>,
}

impl Timetable {
    pub(crate) fn add(&mut self, step: &'static str, end: End, took: Duration) {
        self.rows.push((step, end, took));
    }
}

impl fmt::Display for Timetable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (step, end, took) in &self.rows {
            writeln!(f, "{step:<12} {:>8.1} s  {end}", took.as_secs_f64())?;
        }
        let total: Duration = self.rows.iter().map(|(_, _, took)| *took).sum();
        write!(f, "{:<12} {:>8.1} s", "total", total.as_secs_f64())
    }
}

#[cfg(test)]
mod tests;
