//! Kills a process that calls a flaky service with `hapax-client`: `cargo xtask prove client`.
#![allow(clippy::print_stdout, reason = "the report is what this program is for")]

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use clap::{Parser, Subcommand};
use hapax_e2e::client::{self, CallerDefect, Calls, ClientReport, Plan};
use hapax_e2e::goal::{self, Goal};
use hapax_e2e::rig::args::{ProgramArg, SHOWN_MAX, SeedArg};

/// One kill in so many calls must hit calls under way: 20 of 1,000 calls.
const CALLS_A_BUSY_KILL: u64 = 50;
/// Calls with which a planted defect must be found.
const TEETH_CALLS: u64 = 200;

/// Kills a process that calls a flaky service, and audits its calls.
#[derive(Parser, Debug)]
struct Args {
    /// Logical calls.
    #[arg(long, default_value_t = 1_000)]
    calls: u64,
    #[command(flatten)]
    seed: SeedArg,
    #[command(flatten)]
    program: ProgramArg,
    /// Plants defects in the caller, which the audit must find.
    #[arg(long)]
    teeth: bool,
    #[command(subcommand)]
    role: Option<Role>,
}

#[derive(Subcommand, Debug)]
enum Role {
    /// The process that is killed.
    #[command(hide = true)]
    Child(Calls),
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    if let Some(Role::Child(calls)) = args.role {
        runtime.block_on(calls.run())?;
        return Ok(ExitCode::SUCCESS);
    }
    let seed = args.seed.value()?;
    let caller = std::env::current_exe()?;
    let plan = Plan { caller, program: args.program.path()?, calls: args.calls, seed, defect: None };
    println!("seed {seed}");
    if args.teeth {
        let mut missed = 0;
        for defect in CallerDefect::ALL {
            let report = runtime.block_on(client::run(&Plan {
                calls: TEETH_CALLS,
                defect: Some(defect),
                ..plan.clone()
            }))?;
            let found = match defect {
                CallerDefect::RandomKeys => report.doubles,
                CallerDefect::Forgotten => report.missing,
            };
            println!("{}: {} calls violated", defect.name(), found.len());
            missed += u32::from(found.is_empty());
        }
        return Ok(goal::print(&[Goal::at_most("client-teeth", f64::from(missed), 0.0)]));
    }
    let started = Instant::now();
    let report = runtime.block_on(client::run(&plan))?;
    print_report(&report, plan.calls, started);
    Ok(goal::print(&[
        Goal::at_most("client-doubles", report.doubles.len() as f64, 0.0),
        Goal::at_most("client-missing", report.missing.len() as f64, 0.0),
        Goal::at_least("client-kills", report.busy_kills as f64, (plan.calls / CALLS_A_BUSY_KILL) as f64),
    ]))
}

fn print_report(report: &ClientReport, calls: u64, started: Instant) {
    let ClientReport { doubles, missing, kills, busy_kills, uncertain, applied } = report;
    println!(
        "{calls} calls, {kills} kills, {busy_kills} of them with calls under way, {:.1} s",
        started.elapsed().as_secs_f64()
    );
    println!(
        "{uncertain} calls were uncertain: {applied} settled as applied, {} as not applied",
        uncertain - applied
    );
    for (kind, found) in [("doubles", doubles), ("missing", missing)] {
        found.iter().take(SHOWN_MAX).for_each(|fault| println!("violated {kind} client: {fault}"));
    }
}
