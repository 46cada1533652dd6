//! Parses the result lines of benchmarks and proofs: `goal NAME measured VALUE target VALUE ok|short`.

use anyhow::{Result, ensure};

/// The goal lines of one run, in order.
#[derive(Debug, Default)]
pub(crate) struct Goals {
    met: Vec<String>,
    short: Vec<String>,
    unreadable: Vec<String>,
    lines: Vec<String>,
}

impl Goals {
    /// Reads one line of output; other lines are ignored.
    pub(crate) fn read(&mut self, line: &str) {
        if !line.starts_with("goal ") {
            return;
        }
        self.lines.push(line.to_owned());
        match verdict(line) {
            Some((name, GoalVerdict::Met)) => self.met.push(name),
            Some((name, GoalVerdict::Short)) => self.short.push(name),
            None => self.unreadable.push(line.to_owned()),
        }
    }

    /// All goal lines, verbatim.
    pub(crate) fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Checks a run that `ended` so. A short goal takes precedence over a failed program, and that over a missing goal. A
    /// missing goal of `expected` is an error by itself: a program that measures nothing must not pass.
    pub(crate) fn check(&self, ended: Result<()>, expected: &[&str]) -> Result<()> {
        ensure!(self.unreadable.is_empty(), "unreadable goal line: {}", self.unreadable.join(" | "));
        ensure!(self.short.is_empty(), "short of the goal: {}", self.short.join(", "));
        ended?;
        let missing: Vec<&str> =
            expected.iter().copied().filter(|name| !self.met.iter().any(|met| met == name)).collect();
        ensure!(missing.is_empty(), "no goal line was printed for {}", missing.join(", "));
        Ok(())
    }
}

enum GoalVerdict {
    Met,
    Short,
}

fn verdict(line: &str) -> Option<(String, GoalVerdict)> {
    let (name, values) = line.strip_prefix("goal ")?.split_once(" measured ")?;
    let (measured, target) = values.split_once(" target ")?;
    let (target, word) = target.rsplit_once(' ')?;
    let verdict = match word {
        "ok" => GoalVerdict::Met,
        "short" => GoalVerdict::Short,
        _ => return None,
    };
    let filled = [name, measured, target].iter().all(|part| !part.trim().is_empty());
    (filled && !name.contains(' ')).then(|| (name.to_owned(), verdict))
}

#[cfg(test)]
mod tests;
