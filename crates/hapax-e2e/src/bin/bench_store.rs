//! Measures the file store and the engines it could stand on: `cargo xtask bench store`.
#![allow(clippy::print_stdout, reason = "the tables are what this program is for")]

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, ValueEnum};
use hapax_e2e::bench_store::callers::{self, ByCallers, CALLERS};
use hapax_e2e::bench_store::engines::{self, BATCHES, Row};
use hapax_e2e::bench_store::growth::{self, Growth};
use hapax_e2e::bench_store::{Effort, Sample};
use hapax_e2e::goal::{self, Goal};

#[derive(Parser, Debug)]
#[command(about = "Measures the file store and the engines it could stand on")]
struct Args {
    /// A smoke test: less of everything, so that the goals mean little.
    #[arg(long)]
    quick: bool,
    /// Only this part.
    #[arg(long, value_enum)]
    part: Option<Part>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Part {
    Engines,
    Callers,
    Growth,
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    let effort = if args.quick { Effort::QUICK } else { Effort::FULL };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build()?;
    println!(
        "pairs of claim and completion a second, synced; median of {} rounds ± half the spread",
        effort.rounds
    );
    if !cfg!(feature = "engines") {
        println!("built without the feature `engines`: redb and fjall are left out");
    }

    let wanted = |part| args.part.is_none_or(|only| only == part);
    let mut goals = Vec::new();
    if wanted(Part::Engines) {
        print_engines(&engines::measure(&effort)?);
    }
    if wanted(Part::Callers) {
        let by_callers = callers::measure(&runtime, &effort)?;
        print_callers(&by_callers);
        let [.., most_callers] = &by_callers.ratio;
        goals.push(Goal::at_least("file-pairs", most_callers.median(), 3.0));
    }
    if wanted(Part::Growth) {
        let growth = growth::measure(&runtime, &effort)?;
        print_growth(&growth);
        goals.push(Goal::at_most("file-growth", growth.ratio.median(), 1.5));
    }
    Ok(goal::print(&goals))
}

fn print_head(what: &str, columns: [usize; 4]) {
    println!("\n{what:<34}{}", columns.map(|column| format!("{column:>14}")).concat());
}

fn print_row(name: &str, samples: &[Sample; 4]) {
    println!("{name:<34}{}", samples.each_ref().map(|sample| format!("{sample:>14}")).concat());
}

fn print_engines(rows: &[Row]) {
    print_head("one thread, operations in a commit:", BATCHES);
    rows.iter().for_each(|row| print_row(row.name, &row.pairs));
    let Some(naive) = rows.first() else { return };
    for row in &rows[1..] {
        let ratios = [0, 1, 2, 3].map(|at| row.pairs[at].median() / naive.pairs[at].median());
        let name = format!("  {} / {}", row.name, naive.name);
        println!("{name:<34}{}", ratios.map(|ratio| format!("{ratio:>14.2}")).concat());
    }
}

fn print_callers(measured: &ByCallers) {
    print_head("group commit, callers:", CALLERS);
    print_row("file store", &measured.file);
    print_row("sqlite-two-tables", &measured.two_tables);
    print_row("sqlite-naive", &measured.naive);
    let ratios = measured.ratio.each_ref().map(|ratio| {
        format!("{:>14}", format!("{:.2} ±{:.0}%", ratio.median(), ratio.spread_percent() / 2.0))
    });
    println!("{:<34}{}", "  file store / sqlite-naive", ratios.concat());
}

fn print_growth(growth: &Growth) {
    println!(
        "\nclaim of one caller, median: {:.0} µs ±{:.0}% at 10000 records, {:.0} µs ±{:.0}% at {} (filled in {:.0} s)",
        growth.small_us.median(),
        growth.small_us.spread_percent() / 2.0,
        growth.large_us.median(),
        growth.large_us.spread_percent() / 2.0,
        growth.live_records,
        growth.filled_in.as_secs_f64()
    );
}
