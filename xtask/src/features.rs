//! The step `features`: the library builds without features and with each single feature.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::process;
use crate::programs::{self, CARGO_LIMIT};

/// The crate with optional features.
const PACKAGE: &str = "hapax";

/// Checks every selection of at most one feature.
pub(crate) fn check(root: &Path) -> Result<()> {
    let answer = programs::cargo(root)
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .output()
        .context("failed to run `cargo metadata`")?;
    ensure!(answer.status.success(), "`cargo metadata` failed: {}", answer.status);
    let metadata = serde_json::from_slice(&answer.stdout).context("`cargo metadata` printed no JSON")?;
    for feature in [""].into_iter().chain(features(&metadata)?) {
        let mut command = programs::cargo(root);
        command.args([
            "check",
            "--package",
            PACKAGE,
            "--lib",
            "--no-default-features",
            "--features",
            feature,
        ]);
        println!("── {}", if feature.is_empty() { "no feature" } else { feature });
        process::run(&mut command, CARGO_LIMIT, |_| {})
            .with_context(|| format!("{PACKAGE} does not build with the features [{feature}]"))?;
    }
    Ok(())
}

/// The names of the package's features, sorted, without `default`.
fn features(metadata: &Value) -> Result<Vec<&str>> {
    let mut packages = metadata["packages"].as_array().into_iter().flatten();
    let package = packages.find(|package| package["name"] == PACKAGE);
    let features = package.and_then(|package| package["features"].as_object());
    let features = features.with_context(|| format!("`cargo metadata` lists no features of {PACKAGE}"))?;
    Ok(features.keys().map(String::as_str).filter(|name| *name != "default").collect())
}

#[cfg(test)]
mod tests;
