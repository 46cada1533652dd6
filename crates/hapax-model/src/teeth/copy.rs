//! A scratch copy of the workspace: plants a defect, runs its proof, restores the file.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};

use super::{Proof, Tooth};

/// The folders of the workspace that the proofs build from and read.
const FOLDERS: [&str; 3] = ["crates", "spec", "xtask"];

/// The number of findings shown per run.
const FINDINGS_SHOWN: usize = 3;

/// A copy of the workspace's sources in which defects are planted.
#[derive(Debug)]
pub struct WorkspaceCopy {
    original: PathBuf,
    root: PathBuf,
    /// Separate from the workspace's own: cargo identifies a crate by its relative path and would reuse the one built
    /// with a defect.
    target: PathBuf,
    /// Held while the copy is in use: its path is fixed, for incremental builds.
    _lock: File,
}

/// The result of one run of a proof.
#[derive(Debug)]
pub struct ProofRun {
    /// The broken properties it found.
    pub broken: Vec<Broken>,
    /// The duration in seconds, including the build.
    pub seconds: f64,
}

/// One property that a proof found broken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Broken {
    /// Its name.
    pub property: String,
    /// The location of the violation as the proof prints it.
    pub location: String,
}

impl WorkspaceCopy {
    /// Updates the copy. Unchanged files keep their modification time, so that little is rebuilt.
    ///
    /// # Errors
    /// When the copy cannot be written.
    pub fn new() -> Result<Self> {
        let original = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
        let root = std::env::temp_dir().join("hapax-teeth");
        fs::create_dir_all(&root)?;
        let lock = File::create(root.join("lock"))?;
        lock.lock()?;
        let target =
            std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| original.join("target"), PathBuf::from);
        for file in ["Cargo.toml", "Cargo.lock"] {
            copy_file(&original.join(file), &root.join(file))?;
        }
        for folder in FOLDERS {
            copy_folder(&original.join(folder), &root.join(folder))?;
        }
        Ok(Self { original, root, target: target.join("teeth"), _lock: lock })
    }

    /// Runs a proof on the unmodified copy and expects it to find nothing.
    ///
    /// # Errors
    /// When it finds a violation, or does not run to its end.
    pub fn run_without_defect(&self, proof: Proof) -> Result<ProofRun> {
        let run = self.run(proof, &[])?;
        ensure!(run.broken.is_empty(), "without any defect {proof:?} finds {run} broken");
        Ok(run)
    }

    /// Plants the defect, runs its proof and restores the file. The inner result is an error when the defect does not
    /// apply, or the proof does not run to its end.
    ///
    /// # Errors
    /// When the copy cannot be written and is unusable.
    pub fn run_with_defect(&self, tooth: &Tooth) -> Result<Result<ProofRun>> {
        let mutated = match tooth.apply(&self.original) {
            Ok(mutated) => mutated,
            Err(error) => return Ok(Err(error)),
        };
        fs::write(self.root.join(tooth.file), mutated)?;
        let run = self.run(tooth.caught_by, tooth.breaks);
        copy_file(&self.original.join(tooth.file), &self.root.join(tooth.file))?;
        Ok(run)
    }

    fn run(&self, proof: Proof, breaks: &[&str]) -> Result<ProofRun> {
        let began = Instant::now();
        if let Some(package) = proof.starts() {
            let built = self.cargo(proof).args(["build", "--quiet", "--bins", "-p", package]).output()?;
            ensure!(built.status.success(), "{package}: {}", String::from_utf8_lossy(&built.stderr));
        }
        let output = self.cargo(proof).args(proof.command(breaks)).output()?;
        let printed = String::from_utf8_lossy(&output.stdout);
        if !printed.lines().any(|line| line.starts_with("goal ")) {
            bail!("the proof did not run to its end:\n{}", String::from_utf8_lossy(&output.stderr));
        }
        let broken = printed.lines().filter_map(Broken::parse).collect();
        Ok(ProofRun { broken, seconds: began.elapsed().as_secs_f64() })
    }

    fn cargo(&self, proof: Proof) -> Command {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command
            .current_dir(&self.root)
            .env("CARGO_BUILD_BUILD_DIR", &self.target)
            .env("CARGO_TARGET_DIR", &self.target)
            .envs(proof.environment().iter().copied());
        command
    }
}

impl Broken {
    /// Parses `violated NAME …`.
    fn parse(line: &str) -> Option<Self> {
        let found = line.strip_prefix("violated ")?;
        let (property, location) = found.split_once(' ').unwrap_or((found, ""));
        Some(Self { property: property.to_owned(), location: location.to_owned() })
    }
}

impl ProofRun {
    /// Whether the proof found a property that the defect breaks.
    pub fn caught(&self, tooth: &Tooth) -> bool {
        self.broken.iter().any(|broken| tooth.breaks.contains(&&*broken.property))
    }
}

impl fmt::Display for ProofRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for Broken { property, location } in self.broken.iter().take(FINDINGS_SHOWN) {
            write!(f, "{separator}{}", format_args!("{property} {location}").to_string().trim_end())?;
            separator = ", ";
        }
        match self.broken.len().saturating_sub(FINDINGS_SHOWN) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// Copies a file if its content differs, without its modification time: the copy is newer than any earlier build.
fn copy_file(from: &Path, to: &Path) -> Result<()> {
    let bytes = fs::read(from).with_context(|| format!("read {}", from.display()))?;
    if fs::read(to).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    fs::write(to, bytes).with_context(|| format!("write {}", to.display()))
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    let mut names: HashSet<OsString> = HashSet::new();
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &to)?;
        } else {
            copy_file(&entry.path(), &to)?;
        }
        names.insert(entry.file_name());
    }
    for entry in fs::read_dir(to)? {
        let entry = entry?;
        if names.contains(&entry.file_name()) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
