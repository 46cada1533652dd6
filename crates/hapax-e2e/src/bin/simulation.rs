//! `simulation`: every scenario with every fault at every point, then seeded random histories.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the report is what this program is for")]

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use clap::Parser;
use hapax_e2e::goal::{self, Goal};
use hapax_e2e::simulation::event::FaultKind;
use hapax_e2e::simulation::oracle::Violation;
use hapax_e2e::simulation::random;
use hapax_e2e::simulation::scenario::{self, Scenario};
use hapax_e2e::simulation::systematic::{self, ScenarioRow};

/// Faults that must be injected in each random history on average, so that a run without faults fails.
const FAULTS_PER_HISTORY: f64 = 20.0;
/// Faults that must be injected in each scenario on average.
const FAULTS_PER_SCENARIO: f64 = 100.0;
/// Timelines that are printed; the rest are only counted.
const TIMELINES_MAX: usize = 3;

/// Simulates the engine on a simulated clock, under every kind of fault.
#[derive(Parser)]
struct Args {
    /// How many random histories to play.
    #[arg(long, default_value_t = 20_000)]
    histories: u64,
    /// The seed of the first; the others follow.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many threads play them.
    #[arg(long, default_value_t = 2)]
    threads: u64,
    /// Play only this scenario.
    #[arg(long)]
    scenario: Option<String>,
    /// Play no scenarios.
    #[arg(long)]
    random_only: bool,
    /// Stop when one of these rules is broken.
    #[arg(long, value_delimiter = ',')]
    until: Vec<String>,
    /// Print the timeline of every history.
    #[arg(long)]
    timeline: bool,
}

#[derive(Default)]
struct Tally {
    histories: u64,
    operations: u64,
    fired: [u64; FaultKind::ALL.len()],
    /// Seeds of histories in which something was wrong.
    wrong: Vec<u64>,
    /// The rules that were broken.
    broken: BTreeSet<&'static str>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let chosen: Vec<Scenario> = scenario::ALL
        .iter()
        .filter(|scenario| {
            !args.random_only && args.scenario.as_ref().is_none_or(|name| name == scenario.name)
        })
        .copied()
        .collect();
    if chosen.is_empty() && !args.random_only {
        let names: Vec<&str> = scenario::ALL.iter().map(|scenario| scenario.name).collect();
        eprintln!("there is no such scenario; there are: {}", names.join(", "));
        return ExitCode::FAILURE;
    }
    let rows = systematic(&chosen, &args.until);
    let is_over = args.scenario.is_some() || rows.iter().any(|row| breaks(row, &args.until));
    let histories = if is_over { 0 } else { args.histories };
    let tally = histories_in_threads(&args, histories);
    let scenario_faults: u64 = rows.iter().flat_map(|row| row.fired).sum();
    let faults = scenario_faults + tally.fired.iter().sum::<u64>();
    let wrong = rows.iter().map(|row| row.failures.len()).sum::<usize>() + tally.wrong.len();
    let floor = FAULTS_PER_SCENARIO * chosen.len() as f64 + FAULTS_PER_HISTORY * histories as f64;
    let broken = rows.iter().flat_map(|row| &row.failures).flat_map(|(_, played)| &played.violations);
    let broken: BTreeSet<&str> = broken.map(Violation::id).chain(tally.broken).collect();
    broken.iter().for_each(|rule| println!("violated {rule}"));
    let goals = [
        Goal::at_most("simulation-violations", wrong as f64, 0.0),
        Goal::at_least("simulation-faults-fired", faults as f64, floor),
    ];
    goal::print(&goals)
}

fn systematic(chosen: &[Scenario], until: &[String]) -> Vec<ScenarioRow> {
    if chosen.is_empty() {
        return Vec::new();
    }
    let started = Instant::now();
    let mut rows: Vec<ScenarioRow> = Vec::new();
    for scenario in chosen {
        rows.push(systematic::exhaust(scenario));
        if rows.iter().any(|row| breaks(row, until)) {
            break;
        }
    }
    print_header("faults fired");
    for row in &rows {
        print_row(row.name, &row.fired);
    }
    let mut sums = [0; FaultKind::ALL.len()];
    for row in &rows {
        sums.iter_mut().zip(row.fired).for_each(|(sum, fired)| *sum += fired);
    }
    print_row("all scenarios", &sums);
    let plays: u64 = rows.iter().map(|row| row.plays).sum();
    println!("{} scenarios, {plays} plays in {:.1} s", rows.len(), started.elapsed().as_secs_f64());
    for row in &rows {
        for (case, played) in row.failures.iter().take(TIMELINES_MAX) {
            println!("\nWRONG  {}: {case}\n{}", row.name, played.timeline());
            println!("again: simulation --histories 0 --scenario '{}'", row.name);
        }
    }
    rows
}

fn breaks(row: &ScenarioRow, until: &[String]) -> bool {
    row.failures.iter().any(|(_, played)| played.breaks(until))
}

/// Plays the histories, each thread its own range of seeds, and prints the faults.
fn histories_in_threads(args: &Args, histories: u64) -> Tally {
    if histories == 0 {
        return Tally::default();
    }
    let started = Instant::now();
    let enough = AtomicBool::new(false);
    let threads = args.threads.max(1);
    let tallies: Vec<Tally> = thread::scope(|scope| {
        let enough = &enough;
        let workers: Vec<_> = (0..threads)
            .map(|worker| {
                let first = args.seed + histories * worker / threads;
                let end = args.seed + histories * (worker + 1) / threads;
                scope.spawn(move || play_seeds(first..end, args, enough))
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker does not panic")).collect()
    });
    let mut all = Tally::default();
    for tally in tallies {
        all.histories += tally.histories;
        all.operations += tally.operations;
        all.fired.iter_mut().zip(tally.fired).for_each(|(sum, fired)| *sum += fired);
        all.wrong.extend(tally.wrong);
        all.broken.extend(tally.broken);
    }
    print_header("faults fired");
    print_row("random histories", &all.fired);
    println!(
        "{} histories of {} to {} operations, {} in all, in {:.1} s",
        all.histories,
        random::OPERATIONS_MIN,
        random::OPERATIONS_MAX,
        all.operations,
        started.elapsed().as_secs_f64()
    );
    for seed in all.wrong.iter().take(TIMELINES_MAX) {
        println!("\nWRONG  seed {seed}\n{}", random::history(*seed).timeline());
        println!("again: simulation --random-only --histories 1 --seed {seed}");
    }
    if !all.wrong.is_empty() {
        println!("all wrong seeds: {:?}", all.wrong);
    }
    all
}

fn play_seeds(seeds: std::ops::Range<u64>, args: &Args, enough: &AtomicBool) -> Tally {
    let mut tally = Tally::default();
    for seed in seeds {
        if enough.load(Ordering::Relaxed) {
            break;
        }
        let played = random::history(seed);
        tally.histories += 1;
        tally.operations += random::operations(seed);
        tally.fired.iter_mut().zip(played.fired).for_each(|(sum, fired)| *sum += fired);
        if args.timeline {
            println!("{}", played.timeline());
        }
        if !played.violations.is_empty() {
            tally.wrong.push(seed);
            tally.broken.extend(played.violations.iter().map(Violation::id));
            // Enough to diagnose a broken engine.
            if tally.wrong.len() >= 10 || played.breaks(&args.until) {
                enough.store(true, Ordering::Relaxed);
            }
        }
    }
    tally
}

fn print_header(what: &str) {
    let columns: Vec<String> = FaultKind::ALL.iter().map(|kind| format!("{:>9}", kind.name())).collect();
    println!("{what:<30}{}{:>10}", columns.join(""), "all");
}

fn print_row(name: &str, fired: &[u64; FaultKind::ALL.len()]) {
    let columns: Vec<String> = fired.iter().map(|fired| format!("{fired:>9}")).collect();
    println!("{name:<30}{}{:>10}", columns.join(""), fired.iter().sum::<u64>());
}
