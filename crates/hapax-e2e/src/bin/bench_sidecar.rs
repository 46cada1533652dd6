//! What the sidecar costs beside nginx: `cargo xtask bench sidecar`.
#![allow(clippy::print_stdout, reason = "the figures are what this program is for")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use hapax_e2e::goal::{self, Goal};
use hapax_e2e::sidecar;
use hapax_e2e::sidecar::bench::{Bench, Round, Scenario};

/// What the sidecar costs, as a ratio to nginx as a plain reverse proxy.
#[derive(Parser)]
struct Args {
    /// Rounds that count; one more warms up.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Milliseconds each proxy is driven in a round.
    #[arg(long, default_value_t = 2000)]
    millis: u64,
    /// The `hapax` to measure. By default the one beside this program.
    #[arg(long)]
    program: Option<PathBuf>,
    /// Drive only the scenarios whose name has this in it, and judge nothing: for a profiler.
    #[arg(long)]
    only: Option<String>,
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    let span = Duration::from_millis(args.millis);
    let program = args.program.map_or_else(sidecar::beside, Ok)?;
    let bench = Bench::start(&program, span)?;
    println!("nginx has {} worker(s)", bench.workers);
    if let Some(only) = &args.only {
        for scenario in Scenario::ALL.into_iter().filter(|scenario| scenario.name().contains(only)) {
            for _ in 0..args.rounds {
                println!("{}: {:?}", scenario.name(), bench.round(scenario, span)?);
            }
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut rounds: [Vec<Round>; 4] = Default::default();
    for number in 0..=args.rounds {
        for (scenario, rounds) in Scenario::ALL.into_iter().zip(&mut rounds) {
            let round = bench.round(scenario, span)?;
            if number > 0 {
                rounds.push(round);
            }
        }
    }
    println!("{:26} {:>9} {:>6} {:>13} {:>9} {:>9}", "", "req/s", "ratio", "(from to)", "p99 ms", "CPU µs");
    for (scenario, own) in Scenario::ALL.into_iter().zip(&rounds) {
        let ratios = ratios(own, &rounds[0], |round| round.rate);
        println!(
            "{:26} {:9.0} {:6.2} {:>13} {:9.2} {:9.2}",
            scenario.name(),
            median(&sorted(own.iter().map(|round| round.rate))),
            median(&ratios),
            format!("({:.2} {:.2})", ratios[0], ratios[ratios.len() - 1]),
            median(&sorted(own.iter().map(|round| round.p99_millis))),
            median(&sorted(own.iter().map(|round| round.cpu_micros))),
        );
    }
    let [nginx, pass, fresh, replay] = &rounds;
    let rate = |own: &[Round]| median(&ratios(own, nginx, |round| round.rate));
    let goals = [
        Goal::at_least("sidecar-fresh", rate(fresh), 0.40),
        Goal::at_least("sidecar-replay", rate(replay), 1.35),
        Goal::at_least("sidecar-pass", rate(pass), 0.75),
        Goal::at_most("sidecar-pass-cpu", median(&ratios(pass, nginx, |round| round.cpu_micros)), 1.6),
    ];
    goals.iter().for_each(Goal::print);
    Ok(goal::exit(&goals))
}

/// A figure as a ratio to nginx's in the same round, in order.
fn ratios(own: &[Round], nginx: &[Round], figure: fn(&Round) -> f64) -> Vec<f64> {
    sorted(own.iter().zip(nginx).map(|(own, nginx)| figure(own) / figure(nginx)))
}

fn sorted(figures: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures
}

fn median(sorted: &[f64]) -> f64 {
    sorted[sorted.len() / 2]
}
