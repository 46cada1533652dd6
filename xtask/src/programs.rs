//! Cargo, and the workspace's own binaries and examples.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::process;

/// Well above the 20 minutes of a cold build on two cores.
pub(crate) const CARGO_LIMIT: Duration = Duration::from_secs(60 * 60);

/// The cargo that runs this program, in the workspace's root.
pub(crate) fn cargo(root: &Path) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")));
    command.current_dir(root);
    command
}

/// Builds every binary and example. In one call for the whole workspace, because building a single package unifies other
/// features of the dependencies and compiles them again.
pub(crate) fn build(root: &Path) -> Result<()> {
    let mut command = cargo(root);
    command.args(["build", "--workspace", "--bins", "--examples"]);
    process::run(&mut command, CARGO_LIMIT, |_| {})
}

/// The output folder of [`build`]: this program's own, because `cargo xtask` is built in the same profile.
pub(crate) fn built() -> Result<PathBuf> {
    let own = env::current_exe().context("failed to find this program's own file")?;
    own.parent().map(PathBuf::from).context("the executable has no parent folder")
}

/// The names of all examples under `crates/`, sorted.
pub(crate) fn examples(root: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for package in entries(&root.join("crates"))? {
        let folder = package.join("examples");
        if !folder.is_dir() {
            continue;
        }
        for file in entries(&folder)? {
            let is_example =
                file.extension().is_some_and(|kind| kind == "rs") || file.join("main.rs").is_file();
            if let Some(stem) = file.file_stem().filter(|_| is_example) {
                names.push(stem.to_string_lossy().into_owned());
            }
        }
    }
    names.sort();
    Ok(names)
}

/// The entries of a folder, unsorted.
pub(crate) fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let listed = fs::read_dir(folder).with_context(|| format!("failed to list {}", folder.display()))?;
    listed.map(|entry| Ok(entry?.path())).collect()
}

#[cfg(test)]
mod tests;
