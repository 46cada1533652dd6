//! Kills a process that calls a flaky service with `hapax-client`: `cargo xtask prove client`.
#![allow(clippy::print_stdout, reason = "the report is what this program is for")]

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use clap::{Parser, Subcommand};
use hapax_e2e::client::{self, Calls, ClientDefect, ClientReport, Keys, Plan};
use hapax_e2e::goal::{self, Goal};
use hapax_e2e::rig::args::{ProgramArg, SHOWN_MAX, SeedArg};

/// One kill in so many calls must hit calls under way: 20 of 1,000 calls.
const CALLS_A_BUSY_KILL: u64 = 50;
/// A call under way at a kill is looked up in the journal, at one kill in two or more: a kill is at one call in 20.
const CALLS_A_CHECK: u64 = 40;
/// One call in so many is continued from the journal by a later process.
const CALLS_A_RESUMED: u64 = 20;
/// One call in so many is uncertain at the end: about a quarter loses the answer to the sidecar.
const CALLS_AN_UNCERTAIN: u64 = 20;
/// Calls with which a planted defect must be found.
const TEETH_CALLS: u64 = 200;

/// Kills a process that calls a flaky service, and audits its calls.
#[derive(Parser, Debug)]
struct Args {
    /// Logical calls with derived keys, and again with random ones.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(20..))]
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
    let plan = Plan {
        caller,
        program: args.program.path()?,
        calls: args.calls,
        seed,
        keys: Keys::Derived,
        defect: None,
    };
    println!("seed {seed}");
    if args.teeth {
        return Ok(goal::print(&[Goal::at_most(
            "client-teeth",
            runtime.block_on(missed_defects(&plan))?,
            0.0,
        )]));
    }
    let mut reports = Vec::new();
    for keys in Keys::ALL {
        let started = Instant::now();
        let report = runtime.block_on(client::run(&Plan { keys, ..plan.clone() }))?;
        print_report(&report, &plan, keys, started);
        reports.push(report);
    }
    Ok(goal::print(&goals(&reports, plan.calls)))
}

/// The planted defects that are not found.
async fn missed_defects(plan: &Plan) -> Result<f64> {
    let mut missed = 0.0;
    for defect in ClientDefect::ALL {
        // The caller with derived keys repeats what the journal forgets: the journal itself must be looked at.
        let keys = match defect {
            ClientDefect::JournalUnsynced => Keys::Random,
            _ => Keys::Derived,
        };
        let planted = Plan { calls: TEETH_CALLS, keys, defect: Some(defect), ..plan.clone() };
        let report = client::run(&planted).await?;
        let found = match defect {
            ClientDefect::RandomKeys => report.doubles,
            ClientDefect::Forgotten => report.missing,
            ClientDefect::JournalForgets | ClientDefect::JournalUnsynced => report.forgotten,
        };
        println!("{}: {} calls violated", defect.name(), found.len());
        missed += f64::from(u8::from(found.is_empty()));
    }
    Ok(missed)
}

/// Faults of both runs together; of what must have happened, the run in which it happened less often.
fn goals(reports: &[ClientReport], calls: u64) -> Vec<Goal> {
    let none = |name, found: fn(&ClientReport) -> &Vec<String>| {
        Goal::at_most(name, reports.iter().map(|report| found(report).len() as f64).sum(), 0.0)
    };
    let some = |name, happened: fn(&ClientReport) -> u64, calls_each: u64| {
        let fewest = reports.iter().map(happened).min().unwrap_or_default();
        Goal::at_least(name, fewest as f64, (calls / calls_each).max(1) as f64)
    };
    vec![
        none("client-doubles", |report| &report.doubles),
        none("client-missing", |report| &report.missing),
        none("client-forgotten", |report| &report.forgotten),
        none("client-changed", |report| &report.changed),
        some("client-kills", |report| report.busy_kills, CALLS_A_BUSY_KILL),
        some("client-checked", |report| report.checked, CALLS_A_CHECK),
        some("client-resumed", |report| report.resumed, CALLS_A_RESUMED),
        some("client-uncertain", |report| report.uncertain, CALLS_AN_UNCERTAIN),
    ]
}

fn print_report(report: &ClientReport, plan: &Plan, keys: Keys, started: Instant) {
    let ClientReport { doubles, missing, forgotten, changed, kills, busy_kills, .. } = report;
    println!(
        "{} calls with {} keys, {kills} kills, {busy_kills} of them with calls under way, {:.1} s",
        plan.calls,
        keys.name(),
        started.elapsed().as_secs_f64()
    );
    let ClientReport { checked, resumed, uncertain, applied, .. } = report;
    println!("{checked} calls under way were looked up in the journal; {resumed} times a call was resumed");
    println!(
        "{uncertain} calls were uncertain: {applied} settled as applied, {} as not applied",
        uncertain - applied
    );
    let faults = [("doubles", doubles), ("missing", missing), ("forgotten", forgotten), ("changed", changed)];
    for (kind, found) in faults {
        found.iter().take(SHOWN_MAX).for_each(|fault| println!("violated {kind} client: {fault}"));
    }
}
