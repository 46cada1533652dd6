//! `chaos_teeth`: puts defects into a copy of the sources and expects the proof under faults to find each.

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use hapax_e2e::chaos::teeth::TEETH;
use hapax_e2e::goal::Goal;
use hapax_model::teeth::{self, Tally};

/// Checks that the proof under faults finds seeded defects.
#[derive(Parser)]
struct Args {
    /// Only defects whose name, or what they break, contains this.
    #[arg(long, default_value = "")]
    only: String,
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    let Tally { caught, planted } = teeth::run(TEETH, &args.only)?;
    Ok(Goal::at_most("chaos-teeth", f64::from(planted - caught), 0.0).print_and_exit())
}
