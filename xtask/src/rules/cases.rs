//! Reports of the cases in `spec/cases`: one file for each surface that ran them, one line for each rule and case:
//! the rule, the case and its verdict, with tabs between.

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
    pub(super) verdict: Verdict,
}

/// How a case ended.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    Passed,
    Failed,
    /// The surface cannot do what the case asks for, and why.
    Skipped(String),
}

impl Case {
    /// What its file is called; the id also says by which version of HTTP it was asked.
    pub(super) fn name(&self) -> &str {
        self.id.split(' ').next().unwrap_or_default()
    }
}

impl Verdict {
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

impl fmt::Display for Verdict {
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

/// All reports in `folder`, sorted. No folder is no report: there may be no surface yet.
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
    // A surface may be run twice, as by two test programs.
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
        verdict: Verdict::parse(verdict)?,
    };
    Some(case).filter(|_| fields.next().is_none() && !id.is_empty())
}

#[cfg(test)]
mod tests;
