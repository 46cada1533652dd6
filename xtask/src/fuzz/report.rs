//! What libfuzzer's output says about one run of a target.

use anyhow::{Result, ensure};

/// The lines that count, as they come.
#[derive(Debug, Default)]
pub(super) struct Report {
    executions: u64,
    input: Option<String>,
}

/// How a run of a target ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ran {
    /// To the end of its time.
    Through {
        /// How many inputs it tried.
        executions: u64,
    },
    /// Into a panic, an input that takes too long or one that takes too much memory.
    Crashed {
        /// How many inputs it tried until then.
        executions: u64,
        /// The file that holds the one that did it.
        input: String,
    },
}

impl Report {
    /// Takes in one line of output; most are passed over.
    pub(super) fn read(&mut self, line: &str) {
        if let Some(count) = line.strip_prefix("stat::number_of_executed_units:") {
            self.executions = count.trim().parse().unwrap_or_default();
        } else if let Some((_, file)) = line.split_once("Test unit written to ") {
            self.input = Some(file.trim().to_owned());
        }
    }

    /// What to make of a run that `ended` so. One that tried nothing, or died without an input to show, is no run.
    pub(super) fn judge(self, ended: Result<()>) -> Result<Ran> {
        let Self { executions, input } = self;
        match (ended, input) {
            (Err(_), Some(input)) => Ok(Ran::Crashed { executions, input }),
            (Err(error), None) => Err(error),
            (Ok(()), _) => {
                ensure!(executions > 0, "it executed nothing");
                Ok(Ran::Through { executions })
            }
        }
    }
}

/// How the lines begin that libfuzzer prints about itself: how it was set up, what it advises for the next time.
const CHATTER: &[&str] =
    &["INFO: ", "WARNING: Failed to find function", "\tNEW_FUNC", "stat::", "\"", "###### "];

/// Whether a line is worth showing. What is left is silence, or the story of a crash.
pub(super) fn is_for_people(line: &str) -> bool {
    !CHATTER.iter().any(|start| line.starts_with(start))
}

#[cfg(test)]
mod tests;
