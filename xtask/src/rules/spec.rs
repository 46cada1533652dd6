//! The rules that `spec/protocol.md` has: those that are kept, and those that are deliberately not done.

use anyhow::{Result, ensure};

use super::names::RuleId;

/// One rule.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) id: RuleId,
    pub(super) fate: Fate,
    /// What is said to hold it: tests and cases that bear its id.
    pub(super) named: Vec<String>,
}

/// What became of a rule.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is kept, so something must hold it.
    Done,
    /// It is not kept, for this reason.
    NotDone(String),
}

/// The heading over the table of rules that are not kept.
const NOT_DONE: &str = "## Deliberately not done";

/// All rules, in the order in which they are written. A paragraph that starts with `**K-01**` is a rule; under
/// [`NOT_DONE`], so is a line `| R-12 | reason |`.
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
            rule.named.extend(quoted(line).filter(|name| id.is_borne_by(name)).map(str::to_owned));
        }
    }
    ensure!(!rules.is_empty(), "no rule was found in the protocol");
    Ok(rules)
}

fn paragraph(line: &str) -> Option<Rule> {
    let (id, _) = line.strip_prefix("**")?.split_once("**")?;
    Some(Rule { id: RuleId::parse(id)?, fate: Fate::Done, named: Vec::new() })
}

fn row(line: &str) -> Option<Rule> {
    let (id, rest) = line.strip_prefix('|')?.split_once('|')?;
    let reason = rest.trim_end().strip_suffix('|')?.trim();
    let fate = Fate::NotDone(reason.to_owned());
    Some(Rule { id: RuleId::parse(id.trim())?, fate, named: Vec::new() }).filter(|_| !reason.is_empty())
}

/// What stands between backticks.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

#[cfg(test)]
mod tests;
