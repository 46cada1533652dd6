//! The step `rules`: a coverage report of the protocol's rules by the tests and cases that ran and passed.

mod cases;
mod names;
mod spec;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use self::cases::{Case, CaseResult};
pub(crate) use self::names::PassedTests;
use self::spec::{Rule, RuleStatus};
use crate::programs;

/// The environment variable that names the folder for case reports.
pub(crate) const CASE_REPORT: &str = "HAPAX_CASE_REPORT";

/// The folder of the case reports, one file per surface.
pub(crate) fn case_folder() -> Result<PathBuf> {
    Ok(folder()?.join("cases"))
}

/// Prints a line per rule and writes the table with all names. Fails when a rule is not covered, and when a test or case
/// names an unknown rule.
pub(crate) fn check(root: &Path, passed: &PassedTests) -> Result<()> {
    ensure!(!passed.is_empty(), "no test passed in this run; run both: cargo xtask test tests rules");
    let spec = fs::read_to_string(root.join("spec/protocol.md")).context("failed to read the protocol")?;
    let rules = spec::parse(&spec)?;
    let cases = cases::read(&case_folder()?)?;
    let rows: Vec<Row<'_>> = rules.iter().map(|rule| Row::of(rule, passed, &cases)).collect();

    rows.iter().for_each(|row| println!("{}", row.line()));
    let table = folder()?.join("rules.md");
    fs::create_dir_all(folder()?).context("failed to create the folder of the table")?;
    fs::write(&table, markdown(&rows)).with_context(|| format!("failed to write {}", table.display()))?;
    println!("all names: {}", table.display());

    let mut complaints: Vec<String> = rows.iter().filter_map(Row::complaint).collect();
    complaints.extend(unknown_ids(&rules, passed, &cases));
    ensure!(complaints.is_empty(), "{}", complaints.join("\n"));
    Ok(())
}

fn folder() -> Result<PathBuf> {
    Ok(programs::built()?.join("rules"))
}

/// The status of a rule without a test or case that passed.
const NOT_COVERED: &str = "not covered";

/// One rule with the tests and cases that cover it.
struct Row<'a> {
    rule: &'a Rule,
    tests: Vec<&'a str>,
    cases: Vec<&'a Case>,
}

impl<'a> Row<'a> {
    fn of(rule: &'a Rule, passed: &'a PassedTests, cases: &'a [Case]) -> Self {
        let tests = passed.tests().filter(|(_, ids)| ids.contains(&rule.id)).map(|(name, _)| name).collect();
        Self { rule, tests, cases: cases.iter().filter(|case| case.rule == rule.id).collect() }
    }

    fn cases_passed(&self) -> usize {
        self.cases.iter().filter(|case| case.result == CaseResult::Passed).count()
    }

    fn status(&self) -> String {
        match &self.rule.status {
            _ if self.cases.iter().any(|case| case.result == CaseResult::Failed) => "failed".to_owned(),
            RuleStatus::NotDone(reason) => format!("not done: {reason}"),
            RuleStatus::Done if self.tests.len() + self.cases_passed() == 0 => NOT_COVERED.to_owned(),
            RuleStatus::Done => "passed".to_owned(),
        }
    }

    fn line(&self) -> String {
        let (id, tests, cases) = (self.rule.id, self.tests.len(), self.cases_passed());
        format!("rule {id}  {tests} tests  {cases} cases  {}", self.status())
    }

    fn complaint(&self) -> Option<String> {
        let (id, status) = (self.rule.id, self.status());
        if matches!(status.as_str(), "failed" | NOT_COVERED) {
            return Some(format!("{id}: {status}"));
        }
        if self.rule.status == RuleStatus::Done && self.rule.named.is_empty() {
            return Some(format!("{id}: the protocol cites neither a test nor a case"));
        }
        let absent = self.rule.named.iter().find(|name| !self.has(name))?;
        Some(format!("{id}: the protocol cites `{absent}`, which did not run and pass"))
    }

    /// Whether a test or a case of this name passed. The protocol omits the crate and the module `tests`.
    fn has(&self, name: &str) -> bool {
        let is_passed = |case: &&Case| case.result == CaseResult::Passed && case.name() == name;
        self.tests.iter().any(|test| test.replace("tests::", "").ends_with(name))
            || self.cases.iter().any(is_passed)
    }
}

/// Ids in names of tests and cases that the protocol does not define.
fn unknown_ids(rules: &[Rule], passed: &PassedTests, cases: &[Case]) -> Vec<String> {
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
    let mut text = "| rule | status | tests | cases |\n|---|---|---|---|\n".to_owned();
    for row in rows {
        let tests: Vec<String> = row.tests.iter().map(|name| format!("`{name}`")).collect();
        let cases: Vec<String> = row.cases.iter().map(|case| format!("{case}: {}", case.result)).collect();
        let (tests, cases) = (tests.join("<br>"), cases.join("<br>"));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| {} | {} | {tests} | {cases} |", row.rule.id, row.status());
    }
    text
}

#[cfg(test)]
mod tests;
