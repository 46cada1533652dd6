//! Builds the fuzz targets with a stable compiler and the flags of cargo-fuzz.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::process;
use crate::programs::{self, CARGO_LIMIT};

/// The compiler flags of cargo-fuzz without a sanitizer; the workspace has no unsafe code in its parsers.
const RUSTFLAGS: &[&str] = &[
    "--cfg=fuzzing",
    // Counts every edge, and traces comparisons for libfuzzer.
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    // The linker must keep counters that are not referenced.
    "-Clink-dead-code",
];

/// Builds all targets into `folder` and returns the folder of the binaries.
pub(super) fn build(root: &Path, folder: &Path) -> Result<PathBuf> {
    sync_lock_file(root)?;
    let host = host(root)?;
    let mut command = programs::cargo(&root.join("fuzz"));
    command
        // With `--target`, build scripts and macros are built without the flags; they do not link with them.
        .args(["build", "--release", "--bins", "--target", &host, "--target-dir"])
        .arg(folder)
        // The source of flags with the highest precedence in cargo.
        .env("CARGO_ENCODED_RUSTFLAGS", RUSTFLAGS.join("\x1f"));
    process::run(&mut command, CARGO_LIMIT, |_| {})?;
    Ok(folder.join(host).join("release"))
}

/// Copies the workspace's lock file, so that the fuzzed versions are the tested ones. Cargo adds the dependencies of the
/// targets; those entries are kept until the workspace's file changes, because resolving them needs the network.
fn sync_lock_file(root: &Path) -> Result<()> {
    let (workspace, fuzz) = (root.join("Cargo.lock"), root.join("fuzz/Cargo.lock"));
    let changed_at = |file: &Path| fs::metadata(file).and_then(|file| file.modified());
    let workspace_changed_at = changed_at(&workspace).context("failed to stat Cargo.lock")?;
    if changed_at(&fuzz).is_ok_and(|fuzz_changed_at| fuzz_changed_at >= workspace_changed_at) {
        return Ok(());
    }
    fs::copy(workspace, fuzz).context("failed to copy Cargo.lock to fuzz/")?;
    Ok(())
}

/// The host triple of the compiler.
fn host(root: &Path) -> Result<String> {
    let answer =
        Command::new("rustc").arg("-vV").current_dir(root).output().context("failed to run rustc")?;
    ensure!(answer.status.success(), "`rustc -vV` failed: {}", answer.status);
    let answer = String::from_utf8_lossy(&answer.stdout);
    let host = answer.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("`rustc -vV` printed no host")
}
