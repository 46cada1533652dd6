//! Parses the rules of `spec/protocol.md`: implemented ones, and those deliberately not done.

use anyhow::{Result, ensure};

use super::names::RuleId;

/// One rule.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) id: RuleId,
    pub(super) status: RuleStatus,
    /// The cited tests and cases with its id.
    pub(super) named: Vec<String>,
}

/// Whether a rule is implemented.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RuleStatus {
    /// Implemented: a test or case must cover it.
    Done,
    /// Not implemented, for this reason.
    NotDone(String),
}

/// The heading over the table of rules that are not done.
const NOT_DONE: &str = "## Deliberately not done";

/// All rules, in order. A paragraph that starts with `**K-01**` is a rule; under [`NOT_DONE`], so is a line
/// `| R-12 | reason |`.
pub(super) fn parse(text: &str) -> Result<Vec<Rule>> {
    let mut rules: Vec<Rule> = Vec::new();
    let mut not_done = false;
    for line in text.lines() {
        if line.starts_with("## ") {
            not_done = line.trim_end() == NOT_DONE;
        }
        let read = if not_done { row(line) } else { paragraph(line) };
        if let Some(rule) = read {
            ensure!(rules.iter().all(|known| known.id != rule.id), "the protocol has {} twice", rule.id);
            rules.push(rule);
        } else if let Some(rule) = rules.last_mut().filter(|_| line.starts_with("*`")) {
            let id = rule.id;
            rule.named.extend(quoted(line).filter(|name| id.is_in_name(name)).map(str::to_owned));
        }
    }
    ensure!(!rules.is_empty(), "no rule found in the protocol");
    Ok(rules)
}

fn paragraph(line: &str) -> Option<Rule> {
    let (id, _) = line.strip_prefix("**")?.split_once("**")?;
    Some(Rule { id: RuleId::parse(id)?, status: RuleStatus::Done, named: Vec::new() })
}

fn row(line: &str) -> Option<Rule> {
    let (id, rest) = line.strip_prefix('|')?.split_once('|')?;
    let reason = rest.trim_end().strip_suffix('|')?.trim();
    let status = RuleStatus::NotDone(reason.to_owned());
    Some(Rule { id: RuleId::parse(id.trim())?, status, named: Vec::new() }).filter(|_| !reason.is_empty())
}

/// The texts between backticks.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

#[cfg(test)]
mod tests;
