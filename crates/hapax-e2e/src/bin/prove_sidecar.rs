//! Kills a working sidecar again and again and looks at what callers were told: `cargo xtask prove sidecar`.
#![allow(clippy::print_stdout, reason = "the report is what this program is for")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Parser;
use hapax_e2e::goal::{self, Goal};
use hapax_e2e::sidecar::{self, Plan};
use hapax_e2e::witness::{self, Lie};

/// Faults of a kind that are printed; the rest are counted.
const SHOWN_MAX: usize = 20;

#[derive(Parser, Debug)]
#[command(about = "Kills a working sidecar again and again and looks at what callers were told")]
struct Args {
    /// Requests that callers send, not counting their retries.
    #[arg(long, default_value_t = 200_000)]
    requests: u64,
    /// How often the sidecar is killed.
    #[arg(long, default_value_t = 60)]
    kills: u64,
    /// Seconds after which a key without an answer is stuck.
    #[arg(long, default_value_t = 300)]
    patience: u64,
    /// The `hapax` to kill. By default the one beside this program.
    #[arg(long)]
    program: Option<PathBuf>,
    /// Lets the service behind do something wrong, which must be noticed.
    #[arg(long, hide = true, value_enum)]
    lie: Option<Lie>,
}

fn main() -> Result<ExitCode> {
    let Args { requests, kills, patience, program, lie } = Args::parse();
    let program = program.map_or_else(witness::beside, Ok)?;
    let plan = Plan { program, requests, kills, patience: Duration::from_secs(patience), lie };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let started = Instant::now();
    let report = runtime.block_on(sidecar::run(&plan))?;
    println!(
        "{} requests with {} keys, {} retries, {} replays, {} kills, {:.1} s",
        report.requests,
        report.keys,
        report.retries,
        report.replays,
        kills,
        started.elapsed().as_secs_f64()
    );
    println!(
        "{} keys were uncertain: {} settled as applied, {} as not applied",
        report.uncertain, report.applied, report.not_applied
    );
    let faults = [
        ("doubled", &report.doubles),
        ("lost", &report.lost),
        ("wrong", &report.wrong),
        ("stuck", &report.stuck),
    ];
    for (kind, faults) in faults {
        faults.iter().take(SHOWN_MAX).for_each(|fault| println!("{kind}: {fault}"));
    }
    let goals = [
        Goal::at_most("sidecar-doubles", report.doubles.len() as f64, 0.0),
        Goal::at_most("sidecar-lost", report.lost.len() as f64, 0.0),
        Goal::at_most("sidecar-wrong", report.wrong.len() as f64, 0.0),
        Goal::at_most("sidecar-stuck", report.stuck.len() as f64, 0.0),
    ];
    goals.iter().for_each(Goal::print);
    Ok(goal::exit(&goals))
}
