//! Puts each defect of [`hapax_model::teeth`] into a copy of the sources and expects the proof to find it.
#![allow(clippy::print_stdout)]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use clap::Parser;
use hapax_model::teeth::{self, Proof, Tooth};

/// Checks that the proofs find seeded defects.
#[derive(Parser)]
struct Args {
    /// Only defects whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    let copy = Copy::new()?;
    let teeth: Vec<_> = teeth::all().filter(|tooth| tooth.name.contains(&args.only)).collect();
    for proof in Proof::ALL.into_iter().filter(|proof| teeth.iter().any(|tooth| tooth.caught_by == *proof)) {
        let control = copy.run(proof, &[])?;
        ensure!(control.broken.is_empty(), "without any defect {proof:?} finds {:?} broken", control.broken);
        println!("control of {proof:?} without a defect is clean in {:.1} s", control.seconds);
    }
    let mut caught = 0;
    for tooth in &teeth {
        caught += u32::from(copy.bite(tooth)?);
    }
    let wanted = teeth.len() as u32;
    let verdict = if caught == wanted { "ok" } else { "short" };
    println!("goal model-teeth measured {caught} target {wanted} {verdict}");
    Ok(ExitCode::from(u8::from(caught != wanted)))
}

/// A copy of the workspace's sources, outside it, that may be damaged.
struct Copy {
    original: PathBuf,
    root: PathBuf,
    /// Apart from the workspace's own: cargo takes a crate at the same place in two workspaces for the same
    /// crate, and would hand out the damaged one.
    target: PathBuf,
    /// Held as long as the copy is used: its place is always the same, so that cargo builds little.
    _lock: File,
}

/// What a proof printed.
struct Outcome {
    broken: Vec<String>,
    seconds: f64,
}

impl Copy {
    fn new() -> Result<Self> {
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
        for folder in ["crates", "xtask"] {
            remove_if_there(&root.join(folder))?;
            copy_folder(&original.join(folder), &root.join(folder))?;
        }
        Ok(Self { original, root, target: target.join("teeth"), _lock: lock })
    }

    /// Puts the defect in, runs its proof and takes it out; whether the proof found what it should.
    fn bite(&self, tooth: &Tooth) -> Result<bool> {
        let damaged = tooth.apply(&self.original)?;
        fs::write(self.root.join(tooth.file), damaged)?;
        let outcome =
            self.run(tooth.caught_by, tooth.breaks).with_context(|| format!("tooth {}", tooth.name))?;
        copy_file(&self.original.join(tooth.file), &self.root.join(tooth.file))?;
        let caught = outcome.broken.iter().any(|property| tooth.breaks.contains(&property.as_str()));
        let breaks = tooth.breaks.join(" or ");
        match outcome.broken.join(" ") {
            found if caught => {
                println!(
                    "tooth {} breaks {breaks} caught by {found} in {:.1} s",
                    tooth.name, outcome.seconds
                );
            }
            found if found.is_empty() => println!("tooth {} breaks {breaks} NOT CAUGHT", tooth.name),
            found => println!("tooth {} breaks {breaks} NOT CAUGHT, but {found} is broken", tooth.name),
        }
        Ok(caught)
    }

    fn run(&self, proof: Proof, breaks: &[&str]) -> Result<Outcome> {
        let began = Instant::now();
        let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .args(proof.command(breaks))
            .current_dir(&self.root)
            .env("CARGO_NET_OFFLINE", "true")
            .env("CARGO_BUILD_BUILD_DIR", &self.target)
            .env("CARGO_TARGET_DIR", &self.target)
            .output()?;
        let printed = String::from_utf8_lossy(&output.stdout);
        if !printed.lines().any(|line| line.starts_with("goal ")) {
            bail!("the proof did not run to its end:\n{}", String::from_utf8_lossy(&output.stderr));
        }
        let property = |line: &str| line.strip_prefix("violated ")?.split(' ').next().map(str::to_owned);
        let broken = printed.lines().filter_map(property).collect();
        Ok(Outcome { broken, seconds: began.elapsed().as_secs_f64() })
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        // What is left behind costs a little room and is replaced by the next run.
        for folder in ["crates", "xtask"] {
            let _ = fs::remove_dir_all(self.root.join(folder));
        }
    }
}

/// Copies the text alone, so that the copy is newer than whatever was built from the one before.
fn copy_file(from: &Path, to: &Path) -> Result<()> {
    let bytes = fs::read(from).with_context(|| format!("read {}", from.display()))?;
    fs::write(to, bytes).with_context(|| format!("write {}", to.display()))
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &to)?;
        } else {
            copy_file(&entry.path(), &to)?;
        }
    }
    Ok(())
}

fn remove_if_there(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    Ok(())
}
