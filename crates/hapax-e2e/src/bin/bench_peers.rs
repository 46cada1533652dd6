//! Hapax beside its alternatives: `cargo xtask bench peers`.
#![allow(clippy::print_stdout, reason = "the figures are what this program is for")]

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Parser;
use hapax_e2e::bench_peers::{self, Plan};
use hapax_e2e::goal;
use hapax_e2e::rig::args::ProgramArg;

/// Measures Hapax and its alternatives in one run, and tries what they do with duplicates, hang-ups and crashes.
#[derive(Parser)]
struct Args {
    /// Rounds that count.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds each peer is driven in a round.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Only peers whose title contains this, without goals.
    #[arg(long, default_value = "", conflicts_with = "write")]
    only: String,
    /// Measure only.
    #[arg(long, conflicts_with = "write")]
    no_probe: bool,
    /// Write docs/comparison.md and its charts.
    #[arg(long)]
    write: bool,
    #[command(flatten)]
    program: ProgramArg,
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    ensure!(args.rounds > 0 && args.seconds > 0.0, "a round takes time");
    let plan = Plan {
        hapax: args.program.path()?,
        rounds: args.rounds,
        span: Duration::from_secs_f64(args.seconds),
        only: args.only,
        has_probe: !args.no_probe,
    };
    let report = bench_peers::run(&plan)?;
    println!("\n{}", report.tables());
    if args.write {
        report.write(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs"))?;
    }
    if !plan.only.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    bench_peers::print_ahead_on_axum(&report);
    Ok(goal::print(&bench_peers::goals(&report)))
}
