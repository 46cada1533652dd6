//! The step `rules`: every rule of the protocol beside the tests and cases that ran and hold it. It knows what ran
//! and passed, and takes nobody's word for anything else.

mod cases;
mod names;
mod spec;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use self::cases::{Case, Verdict};
pub(crate) use self::names::Passed;
use self::spec::{Fate, Rule};
use crate::programs;

/// Tells the tests where to leave reports of the cases that they ran.
pub(crate) const CASE_REPORT: &str = "HAPAX_CASE_REPORT";

/// Where reports of cases are left, one file for each surface.
pub(crate) fn case_folder() -> Result<PathBuf> {
    Ok(folder()?.join("cases"))
}

/// Prints a line for each rule and writes the table with all names. Fails when a rule is held by nothing, and when
/// something claims to hold a rule that does not exist.
pub(crate) fn check(root: &Path, passed: &Passed) -> Result<()> {
    ensure!(!passed.is_empty(), "no test was seen to pass; run it with them: cargo xtask test tests rules");
    let spec = fs::read_to_string(root.join("spec/protocol.md")).context("failed to read the protocol")?;
    let rules = spec::parse(&spec)?;
    let cases = cases::read(&case_folder()?)?;
    let rows: Vec<Row<'_>> = rules.iter().map(|rule| Row::of(rule, passed, &cases)).collect();

    rows.iter().for_each(|row| println!("{}", row.line()));
    let table = folder()?.join("rules.md");
    fs::create_dir_all(folder()?).context("failed to make a folder for the table")?;
    fs::write(&table, markdown(&rows)).with_context(|| format!("failed to write {}", table.display()))?;
    println!("all names: {}", table.display());

    let mut complaints: Vec<String> = rows.iter().filter_map(Row::complaint).collect();
    complaints.extend(strangers(&rules, passed, &cases));
    ensure!(complaints.is_empty(), "{}", complaints.join("\n"));
    Ok(())
}

fn folder() -> Result<PathBuf> {
    Ok(programs::built()?.join("rules"))
}

/// One rule and what holds it.
struct Row<'a> {
    rule: &'a Rule,
    tests: Vec<&'a str>,
    cases: Vec<&'a Case>,
}

impl<'a> Row<'a> {
    fn of(rule: &'a Rule, passed: &'a Passed, cases: &'a [Case]) -> Self {
        let tests = passed.tests().filter(|(_, ids)| ids.contains(&rule.id)).map(|(name, _)| name).collect();
        Self { rule, tests, cases: cases.iter().filter(|case| case.rule == rule.id).collect() }
    }

    fn cases_passed(&self) -> usize {
        self.cases.iter().filter(|case| case.verdict == Verdict::Passed).count()
    }

    fn verdict(&self) -> String {
        match &self.rule.fate {
            _ if self.cases.iter().any(|case| case.verdict == Verdict::Failed) => "failed".to_owned(),
            Fate::NotDone(reason) => format!("not done: {reason}"),
            Fate::Done if self.tests.len() + self.cases_passed() == 0 => "held by nothing".to_owned(),
            Fate::Done => "passed".to_owned(),
        }
    }

    fn line(&self) -> String {
        let (id, tests, cases) = (self.rule.id, self.tests.len(), self.cases_passed());
        format!("rule {id}  {tests} tests  {cases} cases  {}", self.verdict())
    }

    fn complaint(&self) -> Option<String> {
        let (id, verdict) = (self.rule.id, self.verdict());
        if matches!(verdict.as_str(), "failed" | "held by nothing") {
            return Some(format!("{id}: {verdict}"));
        }
        if self.rule.fate == Fate::Done && self.rule.named.is_empty() {
            return Some(format!("{id}: the protocol names neither a test nor a case of it"));
        }
        let absent = self.rule.named.iter().find(|name| !self.has(name))?;
        Some(format!("{id}: the protocol names `{absent}`, which did not run and pass"))
    }

    /// Whether a test or a case of this name passed. The protocol leaves out the crate and the module `tests`.
    fn has(&self, name: &str) -> bool {
        let is_passed = |case: &&Case| case.verdict == Verdict::Passed && case.name() == name;
        self.tests.iter().any(|test| test.replace("tests::", "").ends_with(name))
            || self.cases.iter().any(is_passed)
    }
}

/// Ids that tests and cases name and the protocol lacks: mistyped, or of a rule that was never written down.
fn strangers(rules: &[Rule], passed: &Passed, cases: &[Case]) -> Vec<String> {
    let is_known = |id| rules.iter().any(|rule| rule.id == id);
    let mut found = Vec::new();
    for (name, ids) in passed.tests() {
        let unknown = ids.into_iter().filter(|id| !is_known(*id));
        found.extend(unknown.map(|id| format!("{name}: the protocol has no rule {id}")));
    }
    let unknown = cases.iter().filter(|case| !is_known(case.rule));
    found.extend(unknown.map(|case| format!("{case}: the protocol has no rule {}", case.rule)));
    found
}

fn markdown(rows: &[Row<'_>]) -> String {
    let mut text = "| rule | verdict | tests | cases |\n|---|---|---|---|\n".to_owned();
    for row in rows {
        let tests: Vec<String> = row.tests.iter().map(|name| format!("`{name}`")).collect();
        let cases: Vec<String> = row.cases.iter().map(|case| format!("{case}: {}", case.verdict)).collect();
        let (tests, cases) = (tests.join("<br>"), cases.join("<br>"));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| {} | {} | {tests} | {cases} |", row.rule.id, row.verdict());
    }
    text
}

#[cfg(test)]
mod tests;
