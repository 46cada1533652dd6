//! What the layer costs a service: `cargo xtask bench http`.
#![allow(clippy::print_stdout, reason = "the figures are what this program is for")]

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use hapax_e2e::bench_http::{self, Key, Round, Scenario, count::Counting};
use hapax_e2e::goal::{self, Goal};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What the layer costs a service, as a ratio to the service without it.
#[derive(Parser)]
struct Args {
    /// Rounds that count; one more warms up. The medians of 60 differ by two hundredths on a noisy machine, which is more than
    /// some goals are met by.
    #[arg(long, default_value_t = 200)]
    rounds: usize,
    /// Milliseconds each service is driven in a round. Many short rounds vary less than a few long ones: a machine that
    /// slows down does so for all services of a round.
    #[arg(long, default_value_t = 100)]
    millis: u64,
    /// Drive only the services whose name has this in it, and judge nothing: for a profiler.
    #[arg(long)]
    only: Option<String>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let folders = [tempfile::tempdir(), tempfile::tempdir(), tempfile::tempdir()]
        .map(|folder| folder.expect("a folder can be made"));
    let scenarios = [
        Scenario::bare(),
        Scenario::layered("uncovered, through the layer", Key::None, bench_http::memory_replay()),
        Scenario::layered("memory, fresh keys", Key::Fresh, bench_http::memory_fresh()),
        Scenario::layered("memory, replays", Key::Known, bench_http::memory_replay()),
        Scenario::layered("file, fresh keys", Key::Fresh, bench_http::file(folders[0].path())),
        Scenario::layered("file, replays", Key::Known, bench_http::file(folders[1].path())),
        Scenario::layered(
            "file, replays, no cache",
            Key::Known,
            bench_http::file_uncached(folders[2].path()),
        ),
        Scenario::layered_plainly("uncovered, not for_axum", Key::None, bench_http::memory_replay()),
    ];
    let span = Duration::from_millis(args.millis);
    if let Some(only) = &args.only {
        for scenario in scenarios.iter().filter(|scenario| scenario.name.contains(only)) {
            (0..args.rounds).for_each(|_| println!("{}: {:?}", scenario.name, scenario.round(span)));
        }
        return ExitCode::SUCCESS;
    }
    let mut rounds: Vec<Vec<Round>> = scenarios.iter().map(|_| Vec::new()).collect();
    for round in 0..=args.rounds {
        for (scenario, rounds) in scenarios.iter().zip(&mut rounds) {
            let measured = scenario.round(span);
            if round > 0 {
                rounds.push(measured);
            }
        }
    }
    println!(
        "{:30} {:>9} {:>6} {:>13} {:>9} {:>9} {:>6} {:>7}",
        "", "req/s", "ratio", "(from to)", "CPU µs", "server µs", "busy", "allocs"
    );
    let ratios: Vec<f64> =
        scenarios.iter().zip(&rounds).map(|(scenario, own)| show(scenario, own, &rounds[0], span)).collect();
    let goals = [
        Goal::at_least("layer-pass", ratios[1], 0.97),
        Goal::at_least("layer-memory-fresh", ratios[2], 0.60),
        Goal::at_least("layer-memory-replay", ratios[3], 0.85),
        Goal::at_least("layer-file-fresh", ratios[4], 0.25),
        Goal::at_least("layer-file-replay", ratios[5], 0.80),
    ];
    goals.iter().for_each(Goal::print);
    goal::exit(&goals)
}

/// Prints a scenario's figures; its rate as a ratio to the bare service's in the same round, the median of all.
fn show(scenario: &Scenario, own: &[Round], bare: &[Round], span: Duration) -> f64 {
    let ratios = sorted(own.iter().zip(bare).map(|(own, bare)| own.rate / bare.rate));
    let median = |figure: fn(&Round) -> f64| {
        let all = sorted(own.iter().map(figure));
        all[all.len() / 2]
    };
    let ratio = ratios[ratios.len() / 2];
    println!(
        "{:30} {:9.0} {:6.2} {:>13} {:9.2} {:9.2} {:6.2} {:7.1}",
        scenario.name,
        median(|round| round.rate),
        ratio,
        format!("({:.2} {:.2})", ratios[0], ratios[ratios.len() - 1]),
        median(|round| round.cpu_micros),
        median(|round| round.server_micros),
        median(|round| round.server_busy),
        scenario.allocations(span),
    );
    ratio
}

fn sorted(figures: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures
}
