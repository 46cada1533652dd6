//! Measures the Redis store against `redis-benchmark` on the same server, and the cost of the layer on it for a service:
//! `cargo xtask bench redis`.
#![allow(clippy::print_stdout, reason = "the figures are what this program is for")]

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use hapax_e2e::bench_http::count::Counting;
use hapax_e2e::bench_redis::{Bench, Effort, Layer, Round};
use hapax_e2e::bench_store::{Sample, after_warm_up};
use hapax_e2e::goal::{self, Goal};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Measures the Redis store against redis-benchmark on the same server, and the cost of the layer on it for a service.
#[derive(Parser, Debug)]
struct Args {
    /// Rounds that count; one more warms up.
    #[arg(long, default_value_t = 5)]
    rounds: u64,
    /// Concurrent callers.
    #[arg(long, default_value_t = 64)]
    callers: usize,
    /// Operations of each side in a round.
    #[arg(long, default_value_t = 60_000)]
    operations: usize,
    /// Drive only the store, without goals: for a profiler.
    #[arg(long)]
    store_alone: bool,
    /// Rounds of the services that count; one more warms up.
    #[arg(long, default_value_t = 60)]
    layer_rounds: usize,
    /// Milliseconds each service is driven in a round.
    #[arg(long, default_value_t = 100)]
    millis: u64,
    /// Drive only the services whose name contains this, without goals: for a profiler.
    #[arg(long)]
    layer_alone: Option<String>,
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    let span = Duration::from_millis(args.millis);
    if let Some(only) = &args.layer_alone {
        for scenario in Layer::start().scenarios.iter().filter(|scenario| scenario.name.contains(only)) {
            (0..args.layer_rounds).for_each(|_| println!("{}: {:?}", scenario.name, scenario.round(span)));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let bench = Bench::start(Effort { callers: args.callers, operations: args.operations })?;
    if args.store_alone {
        for round in 0..args.rounds {
            println!("{:?}", bench.store_alone(round)?);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let rounds = after_warm_up(args.rounds, |round| bench.round(round))?;
    let sample = |figure: fn(&Round) -> f64| rounds.iter().map(figure).collect::<Sample>();
    println!("{} callers, one thread; operations a second, median of {} rounds", args.callers, args.rounds);
    for (name, figure) in [
        ("fresh: store", (|round| round.fresh) as fn(&Round) -> f64),
        ("fresh: redis-benchmark, pairs", |round| round.plain_pairs),
        ("replay: store", |round| round.replay),
        ("replay: redis-benchmark, GET", |round| round.plain_get),
    ] {
        println!("{name:<34}{:>14}", sample(figure));
    }
    println!(
        "computing in the store's process, µs: fresh {:.1}, replay {:.1}",
        sample(|round| round.cpu_us.0).median(),
        sample(|round| round.cpu_us.1).median()
    );
    drop(bench);
    let [fresh, replay] = Layer::start().compare(args.layer_rounds, span);
    let goals = [
        Goal::at_least("redis-fresh", sample(|round| round.fresh / round.plain_pairs).median(), 0.7),
        Goal::at_least("redis-replay", sample(|round| round.replay / round.plain_get).median(), 0.8),
        Goal::at_least("layer-redis-fresh", fresh.cpu, 0.45),
        Goal::at_least("layer-redis-replay", replay.cpu, 0.68),
    ];
    Ok(goal::print(&goals))
}
