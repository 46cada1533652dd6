//! A copy of the workspace that may be damaged: puts a defect in, runs its proof, takes the defect out.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};

use super::{Proof, Tooth};

/// What of the workspace a proof is built from and reads.
const FOLDERS: [&str; 3] = ["crates", "spec", "xtask"];

/// How much is told of what a proof found.
const FINDINGS_SHOWN: usize = 3;

/// A copy of the workspace's sources, outside it, that may be damaged.
#[derive(Debug)]
pub struct Copy {
    original: PathBuf,
    root: PathBuf,
    /// Apart from the workspace's own: cargo takes a crate at the same place in two workspaces for the same
    /// crate, and would hand out the damaged one.
    target: PathBuf,
    /// Held as long as the copy is used: its place is always the same, so that cargo builds little.
    _lock: File,
}

/// How a run of a proof went.
#[derive(Debug)]
pub struct Outcome {
    /// What it found broken.
    pub broken: Vec<Broken>,
    /// How long it took, with its build.
    pub seconds: f64,
}

/// One property that a proof found broken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Broken {
    /// Its name.
    pub property: String,
    /// Where it is broken, in the proof's own words.
    pub place: String,
}

impl Copy {
    /// Brings the copy up to date. Files that are the same are left alone, so that little is built again.
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

    /// Runs a proof on the copy as it is and expects it to find nothing.
    ///
    /// # Errors
    /// When it finds something, or does not come to its end.
    pub fn control(&self, proof: Proof) -> Result<Outcome> {
        let control = self.run(proof, &[])?;
        ensure!(control.broken.is_empty(), "without any defect {proof:?} finds {control} broken");
        Ok(control)
    }

    /// Puts the defect in, runs its proof and takes it out. What comes of it is an error when the defect does not fit,
    /// or the proof does not come to its end.
    ///
    /// # Errors
    /// When the copy cannot be written, and so is of no more use.
    pub fn bite(&self, tooth: &Tooth) -> Result<Result<Outcome>> {
        let damaged = match tooth.apply(&self.original) {
            Ok(damaged) => damaged,
            Err(misfit) => return Ok(Err(misfit)),
        };
        fs::write(self.root.join(tooth.file), damaged)?;
        let outcome = self.run(tooth.caught_by, tooth.breaks);
        copy_file(&self.original.join(tooth.file), &self.root.join(tooth.file))?;
        Ok(outcome)
    }

    fn run(&self, proof: Proof, breaks: &[&str]) -> Result<Outcome> {
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
        let broken = printed.lines().filter_map(Broken::read).collect();
        Ok(Outcome { broken, seconds: began.elapsed().as_secs_f64() })
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
    /// Reads `violated NAME …`.
    fn read(line: &str) -> Option<Self> {
        let found = line.strip_prefix("violated ")?;
        let (property, place) = found.split_once(' ').unwrap_or((found, ""));
        Some(Self { property: property.to_owned(), place: place.to_owned() })
    }
}

impl Outcome {
    /// Whether the proof found what the defect breaks.
    pub fn caught(&self, tooth: &Tooth) -> bool {
        self.broken.iter().any(|broken| tooth.breaks.contains(&&*broken.property))
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for Broken { property, place } in self.broken.iter().take(FINDINGS_SHOWN) {
            write!(f, "{separator}{}", format_args!("{property} {place}").to_string().trim_end())?;
            separator = ", ";
        }
        match self.broken.len().saturating_sub(FINDINGS_SHOWN) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// Copies the text alone where it differs, so that the copy is newer than whatever was built from the one before.
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
