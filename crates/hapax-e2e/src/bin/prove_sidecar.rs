//! Kills a sidecar under load and audits the answers of its callers: `cargo xtask prove sidecar`.
#![allow(clippy::print_stdout, reason = "the report is what this program is for")]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Parser;
use hapax_core::Promise;
use hapax_e2e::goal;
use hapax_e2e::rig::ServiceDefect;
use hapax_e2e::rig::args::ProgramArg;
use hapax_e2e::sidecar::{self, Plan};

/// Kills a sidecar under load and audits the answers of its callers.
#[derive(Parser, Debug)]
struct Args {
    /// Requests that callers send, not counting their retries.
    #[arg(long, default_value_t = 200_000)]
    requests: u64,
    /// How often the sidecar is killed.
    #[arg(long, default_value_t = 60)]
    kills: u64,
    /// Seconds after which a key without a final answer is stuck.
    #[arg(long, default_value_t = 300)]
    patience: u64,
    #[command(flatten)]
    program: ProgramArg,
    /// Plants a defect in the service, which the audit must find.
    #[arg(long, hide = true, value_enum)]
    defect: Option<ServiceDefect>,
}

fn main() -> Result<ExitCode> {
    let Args { requests, kills, patience, program, defect } = Args::parse();
    let plan =
        Plan { program: program.path()?, requests, kills, patience: Duration::from_secs(patience), defect };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let started = Instant::now();
    let report = runtime.block_on(sidecar::run(&plan))?;
    println!("{}, {kills} kills, {:.1} s", report.load_line(), started.elapsed().as_secs_f64());
    println!("{}", report.settlement_line());
    let promise = Promise::AtMostOnce;
    report.damage.violations("sidecar", promise).iter().for_each(|line| println!("{line}"));
    Ok(goal::print(&report.damage.goals("sidecar", promise)))
}
