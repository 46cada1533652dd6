//! The line that people and scripts read: `goal NAME measured VALUE target VALUE ok|short`.

use std::process::ExitCode;

/// Something measured, and what was aimed at.
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

    /// Whether it was reached.
    pub fn is_met(&self) -> bool {
        self.is_met
    }

    /// Prints the line.
    #[allow(clippy::print_stdout, reason = "it is what the command is run for")]
    pub fn print(&self) {
        println!("{self}");
    }

    /// Prints the line and turns it into an exit code: a short goal is a failed command.
    pub fn print_and_exit(&self) -> ExitCode {
        self.print();
        exit(std::slice::from_ref(self))
    }
}

/// The exit code of a command with these goals.
pub fn exit(goals: &[Goal]) -> ExitCode {
    if goals.iter().all(Goal::is_met) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl std::fmt::Display for Goal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let word = if self.is_met { "ok" } else { "short" };
        write!(f, "goal {} measured {} target {} {word}", self.name, self.measured, self.target)
    }
}

/// Whole numbers without a point, others with two digits behind it.
fn number(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}
