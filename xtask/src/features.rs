//! The step `features`: the library and the program build without features and with each single feature.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::process;
use crate::programs::{self, CARGO_LIMIT};

/// The crates with optional features, and what is built of each.
const PACKAGES: [(&str, &str); 2] = [("hapax", "--lib"), ("hapax-cli", "--bins")];

/// Checks every selection of at most one feature.
pub(crate) fn check(root: &Path) -> Result<()> {
    let answer = programs::cargo(root)
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .output()
        .context("failed to run `cargo metadata`")?;
    ensure!(answer.status.success(), "`cargo metadata` failed: {}", answer.status);
    let metadata = serde_json::from_slice(&answer.stdout).context("`cargo metadata` printed no JSON")?;
    for (package, target) in PACKAGES {
        for feature in [""].into_iter().chain(features(&metadata, package)?) {
            let mut command = programs::cargo(root);
            command.args(["check", "--package", package, target]);
            command.args(["--no-default-features", "--features", feature]);
            println!("── {package}: {}", if feature.is_empty() { "no feature" } else { feature });
            process::run(&mut command, CARGO_LIMIT, |_| {})
                .with_context(|| format!("{package} does not build with the features [{feature}]"))?;
        }
    }
    Ok(())
}

/// The names of the package's features, sorted, without `default`.
fn features<'a>(metadata: &'a Value, package: &str) -> Result<Vec<&'a str>> {
    let mut packages = metadata["packages"].as_array().into_iter().flatten();
    let found = packages.find(|found| found["name"] == package);
    let features = found.and_then(|found| found["features"].as_object());
    let features = features.with_context(|| format!("`cargo metadata` lists no features of {package}"))?;
    Ok(features.keys().map(String::as_str).filter(|name| *name != "default").collect())
}

#[cfg(test)]
mod tests;
