//! Kills processes with an open store and checks the directories that they leave: `cargo xtask prove crash`.
#![allow(clippy::print_stdout, reason = "the report is what this program is for")]

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use clap::{Parser, Subcommand};
use hapax_e2e::crash::{
    CrashReport, CrashRig, Death, Engine, Workload, any_death, every_call_of_opening, full_disk, sync_failure,
};
use hapax_e2e::goal::{self, Goal};
use hapax_e2e::rig::args::{SHOWN_MAX, SeedArg};
use hapax_testkit::Random;

/// Rounds of failed syncs and of full disks after the kills.
const FAULT_ROUNDS: u64 = 10;

/// Power losses in which the proof must find that a store does not sync.
const TEETH_ROUNDS: u64 = 20;

/// Kills processes with an open store and checks the directories that they leave.
#[derive(Parser, Debug)]
struct Args {
    /// How many children to kill.
    #[arg(long, default_value_t = 500)]
    rounds: u64,
    #[command(flatten)]
    seed: SeedArg,
    /// The engine under test: file, or a layout of the benchmark.
    #[arg(long, default_value = "file")]
    engine: Engine,
    /// Only this death.
    #[arg(long, value_enum)]
    death: Option<Death>,
    #[command(subcommand)]
    role: Option<Role>,
}

#[derive(Subcommand, Debug)]
enum Role {
    /// The process that is killed.
    #[command(hide = true)]
    Child(Workload),
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    if let Some(Role::Child(workload)) = args.role {
        workload.run()?;
        return Ok(ExitCode::SUCCESS);
    }
    let seed = args.seed.value()?;
    println!("engine {}, {} rounds, --seed {seed}", args.engine, args.rounds);
    let program = std::env::current_exe()?;
    let rig = CrashRig::new(&program, args.engine, seed)?;

    let started = Instant::now();
    let mut report = rig.run(args.rounds, |random| args.death.unwrap_or_else(|| any_death(random)))?;
    println!(
        "{} kills, {} of them busy, {} directories checked, {} keys compared, {:.1} rounds a second",
        report.kills,
        report.busy_kills,
        report.checks,
        report.keys,
        report.kills as f64 / started.elapsed().as_secs_f64()
    );
    let opening = every_call_of_opening(&rig, &mut Random::seeded(seed))?;
    println!(
        "opening: {} kills and {} power losses, one after each call",
        opening.kills,
        opening.checks - opening.kills
    );
    report.lost.extend(opening.lost);
    // Only the file store has kinds of errors for a failed sync and a full disk.
    if args.engine == Engine::File {
        fail_the_disk(&rig, seed, &mut report)?;
        find_missing_syncs(&CrashRig::new(&program, Engine::FileWithoutSync, seed)?, &mut report)?;
    }
    report.lost.iter().take(SHOWN_MAX).for_each(|fault| println!("lost: {fault}"));
    let goals = [
        Goal::at_least("crash-busy-kills", report.busy_ratio(), 0.9),
        Goal::at_most("crash-lost", report.lost.len() as f64, 0.0),
    ];
    Ok(goal::print(&goals))
}

fn fail_the_disk(rig: &CrashRig, seed: u64, report: &mut CrashReport) -> Result<()> {
    for round in 0..FAULT_ROUNDS {
        let faulted = sync_failure(rig, round, &mut Random::seeded(seed).fork(round))?;
        let stopped = faulted.refused.get("stopped").copied().unwrap_or_default();
        println!(
            "failed sync: {} acknowledged, {} unknown, {stopped} refused as stopped, {} wrong",
            faulted.done_before,
            faulted.unknown,
            faulted.check.lost.len()
        );
        if stopped != rig.tasks() {
            report.lost.push(format!("failed sync {round}: the store did not stop for every task"));
        }
        report.lost.extend(faulted.check.lost);

        let faulted = full_disk(rig, round)?;
        let full = faulted.refused.get("full").copied().unwrap_or_default();
        println!(
            "full disk: {} acknowledged before, {full} refused as full, {} unknown, {} acknowledged after, {} wrong",
            faulted.done_before,
            faulted.unknown,
            faulted.done_after,
            faulted.check.lost.len()
        );
        if full == 0 || faulted.done_after == 0 {
            report.lost.push(format!("full disk {round}: the store did not refuse, or did not recover"));
        }
        report.lost.extend(faulted.check.lost);
    }
    Ok(())
}

fn find_missing_syncs(rig: &CrashRig, report: &mut CrashReport) -> Result<()> {
    let unsynced = rig.run(TEETH_ROUNDS, |_| Death::PowerLoss)?;
    println!(
        "without syncing, {} power losses: {} faults found, as expected",
        unsynced.checks,
        unsynced.lost.len()
    );
    if unsynced.lost.is_empty() {
        report.lost.push("the missing syncs of a store were not found".to_owned());
    }
    Ok(())
}
