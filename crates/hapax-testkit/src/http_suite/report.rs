//! [`Report`]: the verdicts of all cases, for output and for the table of rules.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::path::Path;
use std::{fs, io};

use super::compare::Difference;

/// The environment variable that names the folder where reports are written, one file for each surface.
pub const REPORT_DIR: &str = "HAPAX_CASE_REPORT";

/// The verdicts of all cases on one surface.
#[derive(Clone, Debug)]
#[must_use]
pub struct Report {
    /// The surface's name.
    pub surface: String,
    /// Every case in the order of the files, each HTTP version separately.
    pub results: Vec<CaseResult>,
}

/// The verdict of one case.
#[derive(Clone, Debug)]
pub struct CaseResult {
    /// The rule that the case tests.
    pub rule: String,
    /// The case and its HTTP version.
    pub id: String,
    /// The verdict.
    pub verdict: Verdict,
}

/// The verdict of a case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// As expected.
    Passed,
    /// Not as expected.
    Failed(Mismatch),
    /// Not played, with the reason.
    Skipped(String),
}

/// The first step that does not meet its expectation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch {
    step: String,
    differences: Vec<Difference>,
}

impl Mismatch {
    pub(super) fn new(number: usize, name: Option<&str>, differences: Vec<Difference>) -> Self {
        let step = match name {
            Some(name) => format!("step {number} ({name})"),
            None => format!("step {number}"),
        };
        Self { step, differences }
    }

    pub(super) fn at_start(got: String) -> Self {
        let differences = vec![Difference { expected: "the surface to start".into(), got }];
        Self { step: "start".into(), differences }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.step)?;
        for Difference { expected, got } in &self.differences {
            if expected.is_empty() {
                write!(f, "\n    {got}")?;
            } else {
                write!(f, "\n    expected {expected}\n    got      {got}")?;
            }
        }
        Ok(())
    }
}

impl Report {
    /// Whether the case `id` failed over any HTTP.
    pub fn failed(&self, id: &str) -> bool {
        let is_it = |result: &&CaseResult| result.id.split(' ').next() == Some(id);
        self.results.iter().filter(is_it).any(|result| matches!(result.verdict, Verdict::Failed(_)))
    }

    /// The numbers of passed, failed and skipped cases.
    pub fn counts(&self) -> [usize; 3] {
        let mut counts = [0; 3];
        for result in &self.results {
            counts[match result.verdict {
                Verdict::Passed => 0,
                Verdict::Failed(_) => 1,
                Verdict::Skipped(_) => 2,
            }] += 1;
        }
        counts
    }

    /// The reasons for skipped cases, with their numbers: a test asserts them, so that no case is lost unnoticed.
    pub fn skipped(&self) -> BTreeMap<&str, usize> {
        let mut skipped = BTreeMap::new();
        for result in &self.results {
            if let Verdict::Skipped(why) = &result.verdict {
                *skipped.entry(why.as_str()).or_default() += 1;
            }
        }
        skipped
    }

    /// Asserts that no case failed, and then writes the report where [`REPORT_DIR`] says.
    ///
    /// # Panics
    /// When a case failed, with all failures; when none passed; and when the report cannot be written.
    pub fn assert_passed(&self) {
        let [passed, failed, _] = self.counts();
        assert!(passed > 0 && failed == 0, "{self}");
        if let Some(dir) = std::env::var_os(REPORT_DIR) {
            self.write(Path::new(&dir)).expect("the folder for reports can be written");
        }
    }

    /// One line for each case: rule, case, `passed`, `failed` or `skipped: why`, with tabs between.
    pub fn table(&self) -> String {
        let mut table = String::new();
        for CaseResult { rule, id, verdict } in &self.results {
            let verdict = match verdict {
                Verdict::Passed => "passed".to_owned(),
                Verdict::Failed(_) => "failed".to_owned(),
                Verdict::Skipped(why) => format!("skipped: {why}"),
            };
            let _ = writeln!(table, "{rule}\t{id}\t{verdict}");
        }
        table
    }

    fn write(&self, dir: &Path) -> io::Result<()> {
        fs::create_dir_all(dir)?;
        fs::write(dir.join(format!("{}.tsv", self.surface)), self.table())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [passed, failed, skipped] = self.counts();
        writeln!(f, "{}: {passed} passed, {failed} failed, {skipped} skipped", self.surface)?;
        for CaseResult { rule, id, verdict } in &self.results {
            match verdict {
                Verdict::Passed => {}
                Verdict::Failed(mismatch) => writeln!(f, "  FAILED  {rule} {id}: {mismatch}")?,
                Verdict::Skipped(why) => writeln!(f, "  skipped {rule} {id}: {why}")?,
            }
        }
        Ok(())
    }
}
