//! Flips bits of a closed store and claims every operation again: `cargo xtask prove flips`.
#![allow(clippy::print_stdout, reason = "the report is what this program is for")]

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use clap::{Parser, Subcommand};
use hapax_e2e::flips::{Aim, Fill, FlipReport, FlipRig, LARGE, SMALL, StoreEnd};
use hapax_e2e::goal::{self, Goal};
use hapax_e2e::rig::args::{SHOWN_MAX, SeedArg};
use hapax_testkit::Random;

/// Bits that are flipped in an unchecked index, which the proof must find.
const TEETH: u64 = 20;

/// Flips bits of a closed store and claims every operation again.
#[derive(Parser, Debug)]
struct Args {
    /// Bits to flip, each in its own copy of a store.
    #[arg(long, default_value_t = 1_200)]
    flips: u64,
    #[command(flatten)]
    seed: SeedArg,
    #[command(subcommand)]
    role: Option<Role>,
}

#[derive(Subcommand, Debug)]
enum Role {
    /// The process that fills a store.
    #[command(hide = true)]
    Child(Fill),
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    if let Some(Role::Child(fill)) = args.role {
        fill.run()?;
        return Ok(ExitCode::SUCCESS);
    }
    let seed = args.seed.value()?;
    let mut random = Random::seeded(seed);
    println!("{} flips, --seed {seed}", args.flips);
    let rig = FlipRig::new(std::env::current_exe()?)?;

    let aims = [Aim::Anywhere, Aim::AnyFile, Aim::InnerPages, Aim::Index];
    let mut report = FlipReport::default();
    for operations in [SMALL, LARGE] {
        for end in [StoreEnd::Closed, StoreEnd::Killed] {
            let image = rig.image(operations, end)?;
            for aim in aims {
                let started = Instant::now();
                let found = rig.flip(&image, aim, args.flips.div_ceil(16), &mut random)?;
                println!(
                    "{image}, {aim:?}: {} flips, {} stores refused, {} with refused operations, {} operations replayed, {} \
                     executed again, {} wrong, {:.1} s",
                    found.flips,
                    found.refused,
                    found.unreadable,
                    found.replayed,
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
    // Last, because it holds for the rest of the process.
    hapax_store_file::danger_trust_index();
    let unchecked = rig.flip(&rig.image(SMALL, StoreEnd::Closed)?, Aim::Index, TEETH, &mut random)?;
    println!(
        "without checks, {} flips: {} operations executed again, as expected",
        unchecked.flips,
        unchecked.executed_again.len()
    );
    let goals = [
        Goal::at_most("flips-executed-again", report.executed_again.len() as f64, 0.0),
        Goal::at_most("flips-wrong", report.wrong.len() as f64, 0.0),
        Goal::at_least("flips-teeth", unchecked.executed_again.len() as f64, 1.0),
    ];
    println!("{} flips in all", report.flips);
    Ok(goal::print(&goals))
}
