//! Measures the PostgreSQL store against `pgbench` on the same server, and its growth: `cargo xtask bench postgres`.
#![allow(clippy::print_stdout, reason = "the figures are what this program is for")]

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use hapax_e2e::bench_postgres::{Bench, Effort, Round};
use hapax_e2e::bench_store::{Sample, after_warm_up};
use hapax_e2e::goal::{self, Goal};
use hapax_store_postgres::POOL_DEFAULT;

/// Measures the PostgreSQL store against pgbench on the same server, and the cost of many records.
#[derive(Parser, Debug)]
struct Args {
    /// Rounds that count; one more warms up.
    #[arg(long, default_value_t = 5)]
    rounds: u64,
    /// Concurrent callers.
    #[arg(long, default_value_t = 256)]
    callers: usize,
    /// Connections of the store, and of pgbench.
    #[arg(long, default_value_t = POOL_DEFAULT)]
    connections: usize,
    /// Claims with their completions through the store in a round.
    #[arg(long, default_value_t = 60_000)]
    operations: usize,
    /// Seconds for which pgbench runs in a round.
    #[arg(long, default_value_t = 5)]
    plain_seconds: u64,
    /// Records in the large table. Ten million take about 4 GB of disk, and the server's log up to 8 GB.
    #[arg(long, default_value_t = 10_000_000)]
    live_records: u64,
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    let bench = Bench::start(Effort {
        callers: args.callers,
        operations: args.operations,
        connections: args.connections,
        plain_seconds: args.plain_seconds,
    })?;
    let mut goals = vec![coalesced(&bench, &args)?];
    goals.extend(growth(&bench, &args)?);
    Ok(goal::print(&goals))
}

fn coalesced(bench: &Bench, args: &Args) -> Result<Goal> {
    let rounds = after_warm_up(args.rounds, |round| bench.round(round))?;
    let sample = |figure: fn(&Round) -> f64| rounds.iter().map(figure).collect::<Sample>();
    println!("claims with completions a second, median of {} rounds", args.rounds);
    println!(
        "store, {} callers, {} connections{:>16}",
        args.callers,
        args.connections,
        sample(|r| r.coalesced)
    );
    println!("pgbench, {} connections{:>29}", args.connections, sample(|r| r.plain));
    println!("computing in the store's process, µs a pair: {:.1}", sample(|r| r.cpu_us).median());
    Ok(Goal::at_least("postgres-coalesced", sample(|r| r.coalesced / r.plain).median(), 3.0))
}

fn growth(bench: &Bench, args: &Args) -> Result<[Goal; 2]> {
    let growth = bench.growth(args.live_records)?;
    println!("{} records filled in within {:.0} s", args.live_records, growth.filled_in.as_secs_f64());
    println!(
        "a claim by one caller, median: {:.0} µs among 10000 records, {:.0} µs among {}",
        growth.small_us.median(),
        growth.large_us.median(),
        args.live_records
    );
    println!(
        "a second: {:.0} added, or {:.0} under a sweep, and {:.0} swept",
        growth.added_alone, growth.added, growth.swept
    );
    Ok([
        Goal::at_most("postgres-growth", growth.ratio.median(), 1.2),
        Goal::at_least("postgres-sweep", growth.sweep_ratio(), 1.0),
    ])
}
