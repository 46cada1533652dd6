//! Concurrent identical requests and clients that hang up, over real sockets: `cargo xtask prove http`.
#![allow(clippy::print_stdout, reason = "the report is what this program is for")]

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use clap::Parser;
use hapax_e2e::goal::{self, Goal};
use hapax_e2e::http_rounds::{DUPLICATES, MeasuringAllocator, WAITERS, disconnects, duplicates, waiters};
use hapax_e2e::rig::args::SHOWN_MAX;

#[global_allocator]
static ALLOCATOR: MeasuringAllocator = MeasuringAllocator;

/// Bytes that a waiting duplicate with a body of 1 KiB may hold: room for more headers than the ones sent here.
const WAITER_BYTES_MAX: f64 = 8192.0;

/// Sends concurrent identical requests, and hangs up in the middle of others.
#[derive(Parser, Debug)]
struct Args {
    /// Rounds of identical requests.
    #[arg(long, default_value_t = 10_000)]
    rounds: u64,
    /// Rounds in which the client hangs up. By default a tenth of the others.
    #[arg(long)]
    disconnects: Option<u64>,
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;

    let waited = runtime.block_on(waiters())?;
    println!(
        "{WAITERS} duplicates waited for one request: {} executions, {} bytes each",
        waited.executions, waited.bytes_each
    );
    let started = Instant::now();
    let same = runtime.block_on(duplicates(args.rounds))?;
    println!(
        "{} rounds of {DUPLICATES} identical requests: {} executions, {} replays, {} conflicts, {} rounds \
         wrong, {:.1} s",
        same.rounds,
        same.executions,
        same.replays,
        same.conflicts,
        same.wrong.len(),
        started.elapsed().as_secs_f64()
    );
    let started = Instant::now();
    let lost = runtime.block_on(disconnects(args.disconnects.unwrap_or(args.rounds / 10)))?;
    println!(
        "{} clients hung up: {} executions, {} first retries replayed, {} rounds wrong, {:.1} s",
        lost.rounds,
        lost.executions,
        lost.replays,
        lost.wrong.len(),
        started.elapsed().as_secs_f64()
    );
    same.wrong.iter().chain(&lost.wrong).take(SHOWN_MAX).for_each(|fault| println!("wrong: {fault}"));
    // A round with a wrong answer counts like an execution too many.
    let extra = same.executions.abs_diff(same.rounds).max(same.wrong.len() as u64);
    let extra = extra + waited.executions.abs_diff(1);
    let broken = lost.executions.abs_diff(lost.rounds).max(lost.wrong.len() as u64);
    let goals = [
        Goal::at_most("http-executions", extra as f64, 0.0),
        Goal::at_most("http-disconnects", broken as f64, 0.0),
        Goal::at_most("http-waiter-bytes", waited.bytes_each as f64, WAITER_BYTES_MAX),
    ];
    Ok(goal::print(&goals))
}
