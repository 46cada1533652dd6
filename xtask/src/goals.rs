//! The lines by which a benchmark or a proof says how far it got:
//! `goal NAME measured VALUE target VALUE ok|short`.

use anyhow::{Result, ensure};

/// The goal lines of one run, in the order they were printed.
#[derive(Debug, Default)]
pub(crate) struct Goals {
    met: Vec<String>,
    short: Vec<String>,
    unreadable: Vec<String>,
    lines: Vec<String>,
}

impl Goals {
    /// Takes in one line of output; a line that is no goal is passed over.
    pub(crate) fn read(&mut self, line: &str) {
        if !line.starts_with("goal ") {
            return;
        }
        self.lines.push(line.to_owned());
        match verdict(line) {
            Some((name, Verdict::Met)) => self.met.push(name),
            Some((name, Verdict::Short)) => self.short.push(name),
            None => self.unreadable.push(line.to_owned()),
        }
    }

    /// All goal lines as they were printed.
    pub(crate) fn lines(&self) -> &[String] {
        &self.lines
    }

    /// What to make of a run that `ended` so. A short goal explains a bad end, a bad end explains a missing goal,
    /// and a goal of `expected` that is missing is a failure by itself: a program that measures nothing must not
    /// look like one that succeeded.
    pub(crate) fn judge(&self, ended: Result<()>, expected: &[&str]) -> Result<()> {
        ensure!(self.unreadable.is_empty(), "unreadable goal line: {}", self.unreadable.join(" | "));
        ensure!(self.short.is_empty(), "short of the goal: {}", self.short.join(", "));
        ended?;
        let missing: Vec<&str> =
            expected.iter().copied().filter(|name| !self.met.iter().any(|met| met == name)).collect();
        ensure!(missing.is_empty(), "no goal line was printed for {}", missing.join(", "));
        Ok(())
    }
}

enum Verdict {
    Met,
    Short,
}

fn verdict(line: &str) -> Option<(String, Verdict)> {
    let (name, values) = line.strip_prefix("goal ")?.split_once(" measured ")?;
    let (measured, target) = values.split_once(" target ")?;
    let (target, word) = target.rsplit_once(' ')?;
    let verdict = match word {
        "ok" => Verdict::Met,
        "short" => Verdict::Short,
        _ => return None,
    };
    let filled = [name, measured, target].iter().all(|part| !part.trim().is_empty());
    (filled && !name.contains(' ')).then(|| (name.to_owned(), verdict))
}

#[cfg(test)]
mod tests;
