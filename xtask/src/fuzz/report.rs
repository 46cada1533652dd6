//! Parses libfuzzer's output of one run of a target.

use anyhow::{Result, ensure};

/// The relevant values of the output read so far.
#[derive(Debug, Default)]
pub(super) struct Report {
    executions: u64,
    input: Option<String>,
}

/// The result of one run of a target.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FuzzRun {
    /// It ran to its time limit.
    Completed {
        /// The number of inputs.
        executions: u64,
    },
    /// It panicked, or an input exceeded the limit of time or memory.
    Crashed {
        /// The number of inputs before the crash.
        executions: u64,
        /// The file with the crashing input.
        input: String,
    },
}

impl Report {
    /// Reads one line of output; most are ignored.
    pub(super) fn read(&mut self, line: &str) {
        if let Some(count) = line.strip_prefix("stat::number_of_executed_units:") {
            self.executions = count.trim().parse().unwrap_or_default();
        } else if let Some((_, file)) = line.split_once("Test unit written to ") {
            self.input = Some(file.trim().to_owned());
        }
    }

    /// Classifies a run that `ended` so. A run without executions, or one that failed without an input, is an error.
    pub(super) fn classify(self, ended: Result<()>) -> Result<FuzzRun> {
        let Self { executions, input } = self;
        match (ended, input) {
            (Err(_), Some(input)) => Ok(FuzzRun::Crashed { executions, input }),
            (Err(error), None) => Err(error),
            (Ok(()), _) => {
                ensure!(executions > 0, "no input was executed");
                Ok(FuzzRun::Completed { executions })
            }
        }
    }
}

/// Prefixes of libfuzzer's informational lines.
const NOISE: &[&str] =
    &["INFO: ", "WARNING: Failed to find function", "\tNEW_FUNC", "stat::", "\"", "###### "];

/// Whether to show a line: only crash reports remain.
pub(super) fn is_worth_showing(line: &str) -> bool {
    !NOISE.iter().any(|start| line.starts_with(start))
}

#[cfg(test)]
mod tests;
