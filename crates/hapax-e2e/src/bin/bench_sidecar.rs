//! What the sidecar costs, beside nginx and alone: `cargo xtask bench sidecar`.
#![allow(clippy::print_stdout, reason = "the figures are what this program is for")]

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use hapax_e2e::bench_store::Sample;
use hapax_e2e::goal::{self, Goal};
use hapax_e2e::rig::args::ProgramArg;
use hapax_e2e::sidecar::bench::{Bench, Round, Scenario};
use hapax_e2e::sidecar::unread::{self, Keys, Unread};
use hapax_e2e::sidecar::{footprint, slow};

/// Streams with unread responses.
const UNREAD_STREAMS: usize = 2_000;
/// Starts for the median.
const STARTS: usize = 20;
const MIB: f64 = (1 << 20) as f64;

/// The cost of the sidecar: its speed as a ratio to nginx as a plain reverse proxy; its size, start and memory.
#[derive(Parser)]
struct Args {
    /// Rounds that count; one more warms up.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Milliseconds each proxy is driven in a round.
    #[arg(long, default_value_t = 2000)]
    millis: u64,
    #[command(flatten)]
    program: ProgramArg,
    /// Drive only the scenarios whose name contains this, without goals: for a profiler.
    #[arg(long)]
    only: Option<String>,
    /// Concurrent slow connections, as far as the limit of open files permits.
    #[arg(long, default_value_t = 20_000)]
    connections: usize,
    /// Measure size, start and memory instead of speed.
    #[arg(long, conflicts_with = "only")]
    footprint: bool,
    /// Measure only the memory of unread responses.
    #[arg(long, conflicts_with_all = ["only", "footprint"])]
    unread: bool,
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    let program = args.program.path()?;
    if let Some(only) = &args.only {
        drive(&program, &args, only)?;
        return Ok(ExitCode::SUCCESS);
    }
    let goals = if args.unread {
        vec![unread_answers(&program)?]
    } else if args.footprint {
        let mut goals = Vec::from(size_and_start(&program)?);
        goals.extend(crowd(&program, args.connections)?);
        goals.push(unread_answers(&program)?);
        goals
    } else {
        speed(&program, &args)?.into()
    };
    Ok(goal::print(&goals))
}

fn started(program: &Path, span: Duration) -> Result<Bench> {
    let bench = Bench::start(program, span)?;
    println!("nginx has {} worker(s)", bench.workers);
    Ok(bench)
}

/// Drives some scenarios.
fn drive(program: &Path, args: &Args, only: &str) -> Result<()> {
    let span = Duration::from_millis(args.millis);
    let bench = started(program, span)?;
    for scenario in Scenario::ALL.into_iter().filter(|scenario| scenario.name().contains(only)) {
        for _ in 0..args.rounds {
            println!("{}: {:?}", scenario.name(), bench.round(scenario, span)?);
        }
    }
    Ok(())
}

/// Every scenario in turn, round by round.
fn speed(program: &Path, args: &Args) -> Result<[Goal; 4]> {
    let span = Duration::from_millis(args.millis);
    let bench = started(program, span)?;
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
            figures(own, |round| round.rate).median(),
            ratios.median(),
            format!("({:.2} {:.2})", ratios.quantile(0.0), ratios.quantile(1.0)),
            figures(own, |round| round.p99_millis).median(),
            figures(own, |round| round.cpu_micros).median(),
        );
    }
    let [nginx, pass, fresh, replay] = &rounds;
    let rate = |own: &[Round]| ratios(own, nginx, |round| round.rate).median();
    Ok([
        Goal::at_least("sidecar-fresh", rate(fresh), 0.38),
        Goal::at_least("sidecar-replay", rate(replay), 1.20),
        Goal::at_least("sidecar-pass", rate(pass), 0.80),
        Goal::at_most("sidecar-pass-cpu", ratios(pass, nginx, |round| round.cpu_micros).median(), 1.6),
    ])
}

fn size_and_start(program: &Path) -> Result<[Goal; 3]> {
    let size = footprint::stripped_bytes(program)? as f64 / MIB;
    let starts = (0..STARTS).map(|_| Ok(footprint::start_time(program)?.as_secs_f64() * 1e3));
    let starts = starts.collect::<Result<Sample>>()?;
    println!(
        "{STARTS} starts on an empty store: {:.1} ms, from {:.1} to {:.1}",
        starts.median(),
        starts.quantile(0.0),
        starts.quantile(1.0)
    );
    let idle = footprint::idle_bytes(program)? as f64 / MIB;
    Ok([
        Goal::at_most("sidecar-size-mib", size, 20.0),
        Goal::at_most("sidecar-start-ms", starts.median(), 50.0),
        Goal::at_most("sidecar-idle-mib", idle, 20.0),
    ])
}

fn crowd(program: &Path, wanted: usize) -> Result<[Goal; 2]> {
    let slow = slow::run(program, wanted)?;
    println!(
        "{} slow connections ({wanted} wanted, as far as the limit of open files permits): \
         {:.1} MiB in all, {:.1} MiB before them, {:.0} bytes a connection; buffers of the kernel not counted",
        slow.connections,
        slow.peak_bytes as f64 / MIB,
        slow.idle_bytes as f64 / MIB,
        slow.bytes_a_connection()
    );
    Ok([
        Goal::at_most("sidecar-slow-connection-bytes", slow.bytes_a_connection(), 16384.0),
        Goal::at_most("sidecar-connection-cap", slow.cap_faults as f64, 0.0),
    ])
}

/// The goal is about replays of one record. Responses to new keys are limited by the concurrent operations, and are only
/// printed.
fn unread_answers(program: &Path) -> Result<Goal> {
    let replays = unread(program, Keys::One)?;
    unread(program, Keys::Own)?;
    Ok(Goal::at_most("unread-answers-rss", replays.peak_bytes as f64 / MIB, 256.0))
}

fn unread(program: &Path, keys: Keys) -> Result<Unread> {
    let unread = unread::run(program, UNREAD_STREAMS, keys)?;
    println!(
        "{} unread responses of 1 MB, {}: {} reset; {:.1} MiB before, {:.1} MiB at most, {:.1} MiB after",
        unread.streams,
        match keys {
            Keys::One => "all with one key",
            Keys::Own => "each with its own key",
        },
        unread.resets,
        unread.idle_bytes as f64 / MIB,
        unread.peak_bytes as f64 / MIB,
        unread.after_bytes as f64 / MIB,
    );
    Ok(unread)
}

/// A figure as a ratio to nginx's in the same round.
fn ratios(own: &[Round], nginx: &[Round], figure: fn(&Round) -> f64) -> Sample {
    own.iter().zip(nginx).map(|(own, nginx)| figure(own) / figure(nginx)).collect()
}

fn figures(rounds: &[Round], figure: fn(&Round) -> f64) -> Sample {
    rounds.iter().map(figure).collect()
}
