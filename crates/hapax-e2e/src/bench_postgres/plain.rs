//! The plain side: `pgbench` with one statement and one commit for each claim and each completion.

use std::io::Write as _;
use std::process::Command;

use anyhow::{Context, Result};
use hapax_testkit::servers::PostgresServer;
use tempfile::NamedTempFile;

use super::Effort;

/// The script that it repeats.
const PAIR: &str = include_str!("pair.sql");

/// Pairs a second.
pub(super) fn pairs(server: &PostgresServer, effort: Effort) -> Result<f64> {
    let mut script = NamedTempFile::new()?;
    script.write_all(PAIR.as_bytes())?;
    let output = Command::new("pgbench")
        // Statements are prepared once. The store cannot do that, because of poolers.
        .args(["--no-vacuum", "--protocol=prepared", "--jobs=1"])
        .arg(format!("--client={}", effort.connections))
        .arg(format!("--time={}", effort.plain_seconds))
        .arg(format!("--file={}", script.path().display()))
        .arg(server.url())
        .output()
        .context("pgbench cannot be started; install it: apt-get install -y postgresql")?;
    let said = String::from_utf8_lossy(&output.stdout);
    let rate = said.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next());
    let rate = rate
        .filter(|_| output.status.success())
        .with_context(|| format!("pgbench gave no rate: {}", String::from_utf8_lossy(&output.stderr)))?;
    rate.parse().context("a rate is a number")
}
