//! `http_cases`: every case of `spec/cases/http` against the layer around a plain hyper service.
#![allow(clippy::print_stdout, reason = "the report is what this program is for")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Parser;
use hapax::http::IdempotencyLayer;
use hapax::{Hapax, MemoryStore};
use hapax_core::{BoxFuture, ManualClock};
use hapax_e2e::goal::{self, Goal};
use hapax_testkit::Faulty;
use hapax_testkit::http_suite::{
    self, Case, Feature, Gate, InProcess, Origin, Running, Server, Settings, StartError, Surface, Verdict,
};
use tower_layer::Layer as _;

/// Plays the HTTP cases and prints `violated RULE CASE` for each that fails.
#[derive(Parser)]
struct Args {
    /// Plays the cases of these rules first, and the others only when none of those fails.
    #[arg(long, value_delimiter = ',')]
    until: Vec<String>,
}

/// The layer around the origin, with nothing in between.
struct Hyper;

impl Surface for Hyper {
    fn name(&self) -> &str {
        "hyper"
    }

    fn can(&self) -> &[Feature] {
        &Feature::ALL
    }

    /// Shorter than in tests, because a defect may let many cases time out.
    fn patience(&self) -> Duration {
        Duration::from_secs(10)
    }

    async fn start(&self, settings: &Settings, origin: Origin) -> Result<Running, StartError> {
        let settings: hapax::http::Settings = serde_json::from_value(settings.clone().into())?;
        let clock = ManualClock::new();
        let store = Faulty::new(Arc::new(MemoryStore::with_clock(clock.clone())));
        // The cases move the store's clock and inject faults into it, so every request must reach it.
        let hapax = Hapax::builder(store.clone()).cache(0).build();
        let layer = IdempotencyLayer::new(&hapax).policy(settings.policy()?);
        let server = Server::start(Gate::new(layer.layer(origin))).await?;
        let drain = Box::new(move || {
            let hapax = hapax.clone();
            Box::pin(async move {
                hapax.drain(Duration::ZERO).await;
            }) as BoxFuture<'static, ()>
        });
        Ok(InProcess { server, clock, store, drain }.running())
    }
}

fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/cases/http")
}

/// Plays the cases that `filter` takes and prints those that failed. Returns their number.
async fn play(filter: impl Fn(&Case) -> bool) -> Result<usize> {
    let report = http_suite::run(&cases(), &Hyper, filter).await?;
    for result in &report.results {
        if let Verdict::Failed(_) = result.verdict {
            println!("violated {} {}", result.rule, result.id);
        }
    }
    let [passed, failed, skipped] = report.counts();
    println!("{passed} cases passed, {failed} failed, {skipped} were skipped");
    ensure!(skipped == 0, "a layer in the same process has every feature:\n{report}");
    Ok(failed)
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<ExitCode> {
    let Args { until } = Args::parse();
    let mut failed = 0;
    if !until.is_empty() {
        failed += play(|case| until.contains(&case.rule)).await?;
    }
    if failed == 0 {
        failed += play(|case| !until.contains(&case.rule)).await?;
    }
    Ok(goal::print(&[Goal::at_most("http-cases", failed as f64, 0.0)]))
}
