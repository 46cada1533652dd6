//! Several sidecars on one store under load and faults of every kind: `cargo xtask prove chaos`.
#![allow(clippy::print_stdout, reason = "the report is what this program is for")]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Parser;
use hapax_e2e::chaos::{self, Doses, Plan, Row, Setting};
use hapax_e2e::goal::{self, Goal};
use hapax_e2e::rig::ServiceDefect;
use hapax_e2e::rig::args::{ProgramArg, SeedArg};

/// Several sidecars on one store under load and faults of every kind.
#[derive(Parser, Debug)]
struct Args {
    /// The stores, one after the other.
    #[arg(long = "store", value_enum, value_delimiter = ',', default_values = ["file", "redis"])]
    stores: Vec<Setting>,
    /// Requests that callers send to each store, not counting their retries.
    #[arg(long, default_value_t = 200_000)]
    requests: u64,
    #[command(flatten)]
    doses: Doses,
    /// Repeats the run, each time with the next seed, until so many minutes have passed.
    #[arg(long, default_value_t = 0)]
    minutes: u64,
    #[command(flatten)]
    seed: SeedArg,
    /// Seconds after which a key without a final answer is stuck.
    #[arg(long, default_value_t = 120)]
    patience: u64,
    #[command(flatten)]
    program: ProgramArg,
    /// Plants a defect in the service, which the audit must find.
    #[arg(long, hide = true, value_enum)]
    defect: Option<ServiceDefect>,
    /// Ends with the first run that finds one of these kinds of damage, or after several runs.
    #[arg(long, hide = true, value_delimiter = ',')]
    until: Vec<String>,
}

/// Runs with different seeds after which a defect counts as not found.
const UNTIL_RUNS_MAX: u64 = 4;

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    let first = args.seed.value()?;
    let program = args.program.path()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut rows: Vec<Row> = args.stores.iter().map(|store| Row::new(*store)).collect();
    let started = Instant::now();
    let mut runs = 0;
    loop {
        let plan = Plan {
            program: program.clone(),
            requests: args.requests,
            doses: args.doses,
            seed: first + runs,
            patience: Duration::from_secs(args.patience),
            defect: args.defect,
        };
        for (store, row) in args.stores.iter().zip(&mut rows) {
            let began = Instant::now();
            println!("{} with seed {}", store.name(), plan.seed);
            row.add(plan.doses, runtime.block_on(chaos::run(&plan, *store))?);
            println!("{} took {:.1} s", store.name(), began.elapsed().as_secs_f64());
        }
        runs += 1;
        if args.is_enough(&rows, runs, started.elapsed()) {
            break;
        }
    }
    rows.iter().flat_map(Row::violations).for_each(|line| println!("{line}"));
    println!();
    rows.iter().for_each(|row| println!("{row}"));
    let goals: Vec<Goal> = rows.iter().flat_map(Row::goals).collect();
    Ok(goal::print(&goals))
}

impl Args {
    fn is_enough(&self, rows: &[Row], runs: u64, elapsed: Duration) -> bool {
        if self.until.is_empty() {
            return elapsed >= Duration::from_secs(self.minutes * 60);
        }
        let is_wanted = |line: &String| self.until.iter().any(|kind| line.split(' ').nth(1) == Some(kind));
        runs >= UNTIL_RUNS_MAX || rows.iter().flat_map(Row::violations).any(|line| is_wanted(&line))
    }
}
