//! Parses the reports of the cases in `spec/cases`: one file per surface, one line per rule and case, with the rule, the
//! case and its result separated by tabs.

use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::names::RuleId;
use crate::programs;

/// One case on one surface.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Case {
    pub(super) rule: RuleId,
    surface: String,
    id: String,
    pub(super) result: CaseResult,
}

/// The result of a case.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CaseResult {
    Passed,
    Failed,
    /// The surface does not support the case, for this reason.
    Skipped(String),
}

impl Case {
    /// The name of its file; the id also has the HTTP version.
    pub(super) fn name(&self) -> &str {
        self.id.split(' ').next().unwrap_or_default()
    }
}

impl CaseResult {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "passed" => Some(Self::Passed),
            "failed" => Some(Self::Failed),
            _ => {
                let reason = text.strip_prefix("skipped:")?.trim();
                (!reason.is_empty()).then(|| Self::Skipped(reason.to_owned()))
            }
        }
    }
}

impl fmt::Display for CaseResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed => f.write_str("passed"),
            Self::Failed => f.write_str("failed"),
            Self::Skipped(reason) => write!(f, "skipped: {reason}"),
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.surface, self.id)
    }
}

/// All reports in `folder`, sorted. A missing folder has no reports.
pub(super) fn read(folder: &Path) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    if !folder.is_dir() {
        return Ok(cases);
    }
    for file in programs::entries(folder)? {
        let (Some(surface), true) = (file.file_stem(), file.extension().is_some_and(|kind| kind == "tsv"))
        else {
            continue;
        };
        let text = fs::read_to_string(&file).with_context(|| format!("failed to read {}", file.display()))?;
        cases.extend(parse(&surface.to_string_lossy(), &text)?);
    }
    cases.sort();
    // Two test programs may run the same surface.
    cases.dedup();
    Ok(cases)
}

fn parse(surface: &str, text: &str) -> Result<Vec<Case>> {
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.is_empty());
    let read = |(number, line): (u32, &str)| {
        case(surface, line)
            .with_context(|| format!("case report {surface}, line {number} is unreadable: {line}"))
    };
    lines.map(read).collect()
}

fn case(surface: &str, line: &str) -> Option<Case> {
    let mut fields = line.split('\t');
    let (rule, id, verdict) = (fields.next()?, fields.next()?, fields.next()?);
    let case = Case {
        rule: RuleId::parse(rule)?,
        surface: surface.to_owned(),
        id: id.to_owned(),
        result: CaseResult::parse(verdict)?,
    };
    Some(case).filter(|_| fields.next().is_none() && !id.is_empty())
}

#[cfg(test)]
mod tests;
