//! Flips bits of a store that no process uses, and asks for every operation again: `cargo xtask prove flips`.
#![allow(clippy::print_stdout, reason = "the report is what this program is for")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use clap::{Parser, Subcommand};
use hapax_e2e::crash::Seed;
use hapax_e2e::flips::{Aim, End, Fill, LARGE, Report, Rig, SMALL};
use hapax_e2e::goal::{self, Goal};

/// Bits that are flipped to show that an unchecked index would be found out.
const TEETH: u64 = 20;

/// Faults that are printed; the rest are counted.
const SHOWN_MAX: usize = 20;

#[derive(Parser, Debug)]
#[command(about = "Flips bits of a store that no process uses, and asks for every operation again")]
struct Args {
    /// How many bits to flip, each in a copy of its own.
    #[arg(long, default_value_t = 1_200)]
    flips: u64,
    /// Makes the choices of an earlier run again.
    #[arg(long)]
    seed: Option<u64>,
    #[command(subcommand)]
    role: Option<Role>,
}

#[derive(Subcommand, Debug)]
enum Role {
    /// Be the process that fills a store.
    #[command(hide = true)]
    Child {
        #[arg(long)]
        dir: PathBuf,
        #[arg(long)]
        operations: u64,
        #[arg(long, value_enum)]
        end: End,
    },
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    if let Some(Role::Child { dir, operations, end }) = args.role {
        Fill { dir, operations, end }.run()?;
        return Ok(ExitCode::SUCCESS);
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos() as u64;
    let mut seed = Seed::new(args.seed.unwrap_or(now));
    println!("{} flips, --seed {}", args.flips, args.seed.unwrap_or(now));
    let rig = Rig::new(std::env::current_exe()?)?;

    let aims = [Aim::Anywhere, Aim::AnyFile, Aim::Ways, Aim::Index];
    let mut report = Report::default();
    for operations in [SMALL, LARGE] {
        for end in [End::Orderly, End::Killed] {
            let image = rig.image(operations, end)?;
            for aim in aims {
                let started = Instant::now();
                let found = rig.flip(&image, aim, args.flips.div_ceil(16), &mut seed)?;
                println!(
                    "{image}, {aim:?}: {} flips, {} stores refused, {} with operations that are neither run nor answered, {} \
                     operations answered, {} executed again, {} wrong, {:.1} s",
                    found.flips,
                    found.refused,
                    found.unreadable,
                    found.answered,
                    found.executed_again.len(),
                    found.wrong.len(),
                    started.elapsed().as_secs_f64()
                );
                report.add(found);
            }
        }
    }
    for fault in report.executed_again.iter().chain(&report.wrong).take(SHOWN_MAX) {
        println!("fault: {fault}");
    }
    // Last: it holds for the rest of the process.
    hapax_store_file::danger_trust_index();
    let toothless = rig.flip(&rig.image(SMALL, End::Orderly)?, Aim::Index, TEETH, &mut seed)?;
    println!(
        "without checks, {} flips: {} operations executed again, as must be",
        toothless.flips,
        toothless.executed_again.len()
    );
    let goals = [
        Goal::at_most("flips-executed-again", report.executed_again.len() as f64, 0.0),
        Goal::at_most("flips-wrong", report.wrong.len() as f64, 0.0),
        Goal::at_least("flips-teeth", toothless.executed_again.len() as f64, 1.0),
    ];
    goals.iter().for_each(Goal::print);
    println!("{} flips in all", report.flips);
    Ok(goal::exit(&goals))
}
