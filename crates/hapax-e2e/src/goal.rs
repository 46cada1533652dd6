//! [`Goal`]: the line `goal NAME measured VALUE target VALUE ok|short`, which scripts parse.

use std::process::ExitCode;

/// A measured value and its target.
#[derive(Clone, Debug)]
pub struct Goal {
    name: String,
    measured: String,
    target: String,
    is_met: bool,
}

impl Goal {
    /// A goal that is met by this much or more.
    pub fn at_least(name: &str, measured: f64, target: f64) -> Self {
        Self::new(name, measured, target, measured >= target)
    }

    /// A goal that is met by this much or less.
    pub fn at_most(name: &str, measured: f64, target: f64) -> Self {
        Self::new(name, measured, target, measured <= target)
    }

    fn new(name: &str, measured: f64, target: f64, is_met: bool) -> Self {
        Self { name: name.to_owned(), measured: number(measured), target: number(target), is_met }
    }

    /// Whether the target is met.
    pub fn is_met(&self) -> bool {
        self.is_met
    }
}

/// Prints the lines of these goals. The exit code is a failure when one of them is short.
#[allow(clippy::print_stdout, reason = "programs are run for these lines")]
pub fn print(goals: &[Goal]) -> ExitCode {
    goals.iter().for_each(|goal| println!("{goal}"));
    if goals.iter().all(Goal::is_met) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl std::fmt::Display for Goal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let word = if self.is_met { "ok" } else { "short" };
        write!(f, "goal {} measured {} target {} {word}", self.name, self.measured, self.target)
    }
}

/// Whole numbers without a point, others with two decimals.
fn number(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}
