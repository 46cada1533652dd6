//! Several sidecars on one store under load while everything fails that can: `cargo xtask prove chaos`.
#![allow(clippy::print_stdout, reason = "the report is what this program is for")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use clap::Parser;
use hapax_e2e::chaos::{self, Doses, Plan, Row, Setting};
use hapax_e2e::goal::{self, Goal};
use hapax_e2e::witness::{self, Lie};

#[derive(Parser, Debug)]
#[command(about = "Several sidecars on one store under load while everything fails that can")]
struct Args {
    /// The stores, one after the other.
    #[arg(long = "store", value_enum, value_delimiter = ',', default_values = ["file", "redis"])]
    stores: Vec<Setting>,
    /// Requests that callers send to each store, not counting their retries.
    #[arg(long, default_value_t = 200_000)]
    requests: u64,
    #[command(flatten)]
    doses: Doses,
    /// Repeats all of it, each time with the next seed, until so many minutes have passed.
    #[arg(long, default_value_t = 0)]
    minutes: u64,
    /// What the faults come from. By default another one each time.
    #[arg(long)]
    seed: Option<u64>,
    /// Seconds after which a key without an answer is stuck.
    #[arg(long, default_value_t = 120)]
    patience: u64,
    /// The `hapax` to run. By default the one beside this program.
    #[arg(long)]
    program: Option<PathBuf>,
    /// Lets the service behind do something wrong, which must be noticed.
    #[arg(long, hide = true, value_enum)]
    lie: Option<Lie>,
    /// Ends with the first run that finds one of these kinds of damage, or after several runs.
    #[arg(long, hide = true, value_delimiter = ',')]
    until: Vec<String>,
}

/// Runs with different seeds after which a defect counts as not found.
const UNTIL_RUNS_MAX: u64 = 4;

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    let first = args.seed.map_or_else(chance, Ok)?;
    let program = args.program.clone().map_or_else(witness::beside, Ok)?;
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
            lie: args.lie,
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
    goals.iter().for_each(Goal::print);
    Ok(goal::exit(&goals))
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

fn chance() -> Result<u64> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs())
}
