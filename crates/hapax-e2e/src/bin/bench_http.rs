//! What the layer costs a service: `cargo xtask bench http`.
#![allow(clippy::print_stdout, reason = "the figures are what this program is for")]

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use hapax_e2e::bench_http::{self, Key, Scenario, count::Counting};
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
    /// Milliseconds for which each service is driven in a round. Many short rounds vary less than a few long ones, since a
    /// machine that slows down does so for all services of a round.
    #[arg(long, default_value_t = 100)]
    millis: u64,
    /// Drive only the services whose name contains this, without goals: for a profiler.
    #[arg(long)]
    only: Option<String>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let folders = [tempfile::tempdir(), tempfile::tempdir(), tempfile::tempdir()]
        .map(|folder| folder.expect("a temporary folder can be made"));
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
    let beside = bench_http::compare(&scenarios, args.rounds, span);
    let goals = [
        Goal::at_least("layer-pass", beside[1].rate, 0.97),
        Goal::at_least("layer-memory-fresh", beside[2].rate, 0.60),
        Goal::at_least("layer-memory-replay", beside[3].rate, 0.85),
        Goal::at_least("layer-file-fresh", beside[4].rate, 0.25),
        Goal::at_least("layer-file-replay", beside[5].rate, 0.80),
    ];
    goal::print(&goals)
}
