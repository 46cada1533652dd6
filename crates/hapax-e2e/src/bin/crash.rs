//! Kills a working store again and again and looks at what is left: `cargo xtask prove crash`.
#![allow(clippy::print_stdout, reason = "the report is what this program is for")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use clap::{Parser, Subcommand};
use hapax_e2e::crash::{
    Death, Engine, Report, Rig, Seed, Workload, any_death, every_call_of_opening, full_disk, sync_failure,
};
use hapax_e2e::goal::{self, Goal};

/// Rounds of failed syncs and of full disks after the kills.
const FAULT_ROUNDS: u64 = 10;

/// Rounds of power loss in which a store that does not sync must be found out.
const TEETH_ROUNDS: u64 = 20;

/// Faults that are printed; the rest are counted.
const SHOWN_MAX: usize = 20;

#[derive(Parser, Debug)]
#[command(about = "Kills a working store again and again and looks at what is left")]
struct Args {
    /// How many children to kill.
    #[arg(long, default_value_t = 500)]
    rounds: u64,
    /// Makes the choices of an earlier run again.
    #[arg(long)]
    seed: Option<u64>,
    /// What to put to the proof: file, or a layout of the benchmark.
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
    /// Be the process that is killed.
    #[command(hide = true)]
    Child {
        #[arg(long)]
        engine: Engine,
        #[arg(long)]
        dir: PathBuf,
        #[arg(long)]
        first_key: u64,
        #[arg(long)]
        tasks: u64,
    },
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    if let Some(Role::Child { engine, dir, first_key, tasks }) = args.role {
        Workload { engine, dir, first_key, tasks }.run()?;
        return Ok(ExitCode::SUCCESS);
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos() as u64;
    let seed = args.seed.unwrap_or(now);
    println!("engine {}, {} rounds, --seed {seed}", args.engine, args.rounds);
    let program = std::env::current_exe()?;
    let rig = Rig::new(&program, args.engine, seed)?;

    let started = Instant::now();
    let mut report = rig.run(args.rounds, |seed| args.death.unwrap_or_else(|| any_death(seed)))?;
    println!(
        "{} kills, {} of them busy, {} directories checked, {} keys compared, {:.1} rounds a second",
        report.kills,
        report.busy_kills,
        report.checks,
        report.keys,
        report.kills as f64 / started.elapsed().as_secs_f64()
    );
    let opening = every_call_of_opening(&rig, &mut Seed::new(seed))?;
    println!(
        "opening: {} kills and {} power losses, one after each call",
        opening.kills,
        opening.checks - opening.kills
    );
    report.lost.extend(opening.lost);
    // A failed sync and a full disk must be answered by kind, which only the file store does.
    if args.engine == Engine::File {
        fail_the_disk(&rig, seed, &mut report)?;
        show_teeth(&Rig::new(&program, Engine::FileWithoutSync, seed)?, &mut report)?;
    }
    report.lost.iter().take(SHOWN_MAX).for_each(|fault| println!("lost: {fault}"));
    let goals = [
        Goal::at_least("crash-busy-kills", report.busy_ratio(), 0.9),
        Goal::at_most("crash-lost", report.lost.len() as f64, 0.0),
    ];
    goals.iter().for_each(Goal::print);
    Ok(goal::exit(&goals))
}

fn fail_the_disk(rig: &Rig, seed: u64, report: &mut Report) -> Result<()> {
    for round in 0..FAULT_ROUNDS {
        let faulted = sync_failure(rig, round, &mut Seed::new(seed).part(round))?;
        let stopped = faulted.refused.get("stopped").copied().unwrap_or_default();
        println!(
            "failed sync: {} acknowledged, {} unknown, {stopped} refused as stopped, {} wrong",
            faulted.done_before,
            faulted.unknown,
            faulted.report.lost.len()
        );
        if stopped != rig.tasks() {
            report.lost.push(format!("failed sync {round}: the store did not stop for every task"));
        }
        report.lost.extend(faulted.report.lost);

        let faulted = full_disk(rig, round)?;
        let full = faulted.refused.get("full").copied().unwrap_or_default();
        println!(
            "full disk: {} acknowledged before, {full} refused as full, {} unknown, {} acknowledged after, {} wrong",
            faulted.done_before,
            faulted.unknown,
            faulted.done_after,
            faulted.report.lost.len()
        );
        if full == 0 || faulted.done_after == 0 {
            report.lost.push(format!("full disk {round}: the store did not refuse, or did not recover"));
        }
        report.lost.extend(faulted.report.lost);
    }
    Ok(())
}

fn show_teeth(rig: &Rig, report: &mut Report) -> Result<()> {
    let toothless = rig.run(TEETH_ROUNDS, |_| Death::PowerLoss)?;
    println!(
        "without syncing, {} power losses: {} faults found, as must be",
        toothless.checks,
        toothless.lost.len()
    );
    if toothless.lost.is_empty() {
        report.lost.push("a store that does not sync was not found out".to_owned());
    }
    Ok(())
}
