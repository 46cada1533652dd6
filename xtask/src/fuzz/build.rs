//! Builds the fuzz targets with a stable compiler: the flags that cargo-fuzz would give, and cargo.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::process;
use crate::programs::{self, CARGO_LIMIT};

/// What cargo-fuzz tells the compiler when no sanitizer is asked for. There is no unsafe code of ours for one to watch.
const RUSTFLAGS: &[&str] = &[
    "--cfg=fuzzing",
    // Counts every edge, and tells libfuzzer what was compared with what.
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    // The linker must not drop counters that nothing seems to use.
    "-Clink-dead-code",
];

/// Builds all targets into `folder` and returns where their programs are.
pub(super) fn build(root: &Path, folder: &Path) -> Result<PathBuf> {
    take_over_versions(root)?;
    let host = host(root)?;
    let mut command = programs::cargo(&root.join("fuzz"));
    command
        // With a target named, build scripts and macros are built without the flags; they do not link with them.
        .args(["build", "--release", "--bins", "--target", &host, "--target-dir"])
        .arg(folder)
        // The one of cargo's ways to pass flags that outranks all others.
        .env("CARGO_ENCODED_RUSTFLAGS", RUSTFLAGS.join("\x1f"));
    process::run(&mut command, CARGO_LIMIT, |_| {})?;
    Ok(folder.join(host).join("release"))
}

/// Starts from the workspace's lock file, so that what is fuzzed is what is tested. Cargo adds what only the targets
/// need; that is kept until the workspace's file changes, because finding it takes a network.
fn take_over_versions(root: &Path) -> Result<()> {
    let (ours, theirs) = (root.join("Cargo.lock"), root.join("fuzz/Cargo.lock"));
    let changed_at = |file: &Path| fs::metadata(file).and_then(|file| file.modified());
    let ours_changed_at = changed_at(&ours).context("failed to look at Cargo.lock")?;
    if changed_at(&theirs).is_ok_and(|theirs| theirs >= ours_changed_at) {
        return Ok(());
    }
    fs::copy(ours, theirs).context("failed to copy Cargo.lock to fuzz/")?;
    Ok(())
}

/// The platform that the compiler runs on, in its own words.
fn host(root: &Path) -> Result<String> {
    let answer =
        Command::new("rustc").arg("-vV").current_dir(root).output().context("failed to ask rustc")?;
    ensure!(answer.status.success(), "`rustc -vV` ended with {}", answer.status);
    let answer = String::from_utf8_lossy(&answer.stdout);
    let host = answer.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("`rustc -vV` names no host")
}
