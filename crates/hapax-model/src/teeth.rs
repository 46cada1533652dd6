//! Mutation tests of the proofs: each planted defect (a *tooth*) is a small change to the production code that breaks a
//! named property, and a proof must find it.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};

mod copy;
mod engine;
mod list;
mod run;

pub use copy::{Broken, ProofRun, WorkspaceCopy};
pub use engine::ENGINE_TEETH;
pub use list::TEETH;
pub use run::{Tally, run};

/// Every defect of the protocol and the engine, those of the protocol first. `hapax-e2e` lists those of the HTTP layer.
pub fn all() -> impl Iterator<Item = &'static Tooth> {
    TEETH.iter().chain(ENGINE_TEETH)
}

/// One defect: in `file`, `find` becomes `replace`.
#[derive(Clone, Copy, Debug)]
pub struct Tooth {
    /// A description of the defect.
    pub name: &'static str,
    /// The file, relative to the workspace root.
    pub file: &'static str,
    /// The text to replace; it occurs exactly once in the file.
    pub find: &'static str,
    /// The replacement.
    pub replace: &'static str,
    /// The broken properties; the proof must report at least one of them.
    pub breaks: &'static [&'static str],
    /// The proof that must find it.
    pub caught_by: Proof,
}

/// A proof that finds defects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Proof {
    /// The model of this crate, with two executors.
    Model,
    /// The simulation of the engine: all scenarios, then random histories until a property breaks.
    Simulation,
    /// The HTTP cases around a plain hyper service: those of the broken rules first, then the others.
    HttpCases,
    /// Real sidecars on a real Redis under all faults: a short run.
    Chaos,
}

impl Proof {
    /// Every proof.
    pub const ALL: [Self; 4] = [Self::Model, Self::Simulation, Self::HttpCases, Self::Chaos];

    /// The arguments of cargo. The program prints `violated NAME …` for each broken property and runs until one of
    /// `breaks` is violated.
    pub fn command(self, breaks: &[&str]) -> Vec<String> {
        let mut command: Vec<String> = match self {
            // One thread, for a deterministic counterexample.
            Self::Model => ["run", "--quiet", "-p", "hapax-model", "--bin", "model", "--", "--threads", "1"]
                .map(Into::into)
                .into(),
            Self::Simulation => ["run", "--quiet", "-p", "hapax-e2e", "--bin", "simulation", "--"]
                .into_iter()
                .chain(["--histories", "2000", "--threads", "1"])
                .map(Into::into)
                .collect(),
            Self::HttpCases => {
                ["run", "--quiet", "-p", "hapax-e2e", "--bin", "http_cases", "--"].map(Into::into).into()
            }
            Self::Chaos => ["run", "--quiet", "-p", "hapax-e2e", "--bin", "prove_chaos", "--"]
                .into_iter()
                .chain(["--store", "redis", "--requests", "10000", "--seed", "1"])
                .chain([
                    "--kills",
                    "12",
                    "--pauses",
                    "6",
                    "--cuts",
                    "18",
                    "--restarts",
                    "3",
                    "--clock-steps",
                    "0",
                ])
                .map(Into::into)
                .collect(),
        };
        if !breaks.is_empty() {
            command.extend(["--until".to_owned(), breaks.join(",")]);
        }
        command
    }

    /// Another crate whose binaries the proof starts. They are built first.
    pub fn starts(self) -> Option<&'static str> {
        match self {
            Self::Model | Self::Simulation | Self::HttpCases => None,
            Self::Chaos => Some("hapax-cli"),
        }
    }

    /// Additional environment variables of cargo. The cases are short, so the build dominates.
    pub fn environment(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Model | Self::Simulation | Self::Chaos => &[],
            Self::HttpCases => &[("CARGO_PROFILE_DEV_OPT_LEVEL", "0"), ("CARGO_PROFILE_DEV_DEBUG", "none")],
        }
    }
}

impl Tooth {
    /// Whether its name, or a property that it breaks, contains `text`.
    pub fn is_about(&self, text: &str) -> bool {
        self.name.contains(text) || self.breaks.iter().any(|property| property.contains(text))
    }

    /// The source with the defect planted.
    ///
    /// # Errors
    /// When the file cannot be read, the text does not occur in it exactly once, or the replacement changes nothing.
    pub fn apply(&self, workspace: &Path) -> Result<String> {
        let path = workspace.join(self.file);
        let source = std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        let found = source.matches(self.find).count();
        ensure!(found == 1, "tooth {}: its text occurs {found} times in {}", self.name, self.file);
        ensure!(self.find != self.replace, "tooth {} changes nothing", self.name);
        Ok(source.replacen(self.find, self.replace, 1))
    }
}
