//! Powertools for AWS Lambda: a function without HTTP, called by one caller.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::install::{output, sources};
use super::server::Tools;
use crate::bench_http::{OTHER_CORE, SERVER_CORE, pin};
use crate::bench_store::Sample;

/// Its name and package.
pub(super) const POWERTOOLS: &str = "Powertools for AWS Lambda (Python)";

/// Calls a second.
#[derive(Clone, Debug, Default)]
pub(super) struct Calls {
    /// Without idempotency.
    pub(super) bare: Sample,
    /// With a new key for each call.
    pub(super) fresh: Sample,
    /// With one of a thousand keys that were answered before.
    pub(super) replay: Sample,
}

impl Calls {
    /// Measures one more round.
    ///
    /// # Errors
    /// When the function cannot be called.
    pub(super) fn round(&mut self, tools: &Tools, span: Duration) -> Result<()> {
        tools.flush()?;
        let mut python = Command::new(tools.installed.interpreter());
        python.arg(sources("python/powertools.py")).arg(span.as_secs_f64().to_string());
        python.env("REDIS_URL", tools.redis_url()).env("PYTHONDONTWRITEBYTECODE", "1");
        pin(SERVER_CORE);
        let printed = output(&mut python);
        pin(OTHER_CORE);
        let printed = printed?;
        let line =
            printed.lines().find(|line| line.starts_with('{')).context("the function printed no figures")?;
        let rates: Value = serde_json::from_str(line)?;
        for (name, sample) in
            [("bare", &mut self.bare), ("fresh", &mut self.fresh), ("replay", &mut self.replay)]
        {
            sample.push(rates[name].as_f64().context("a rate is a number")?);
        }
        Ok(())
    }
}
