//! `http_teeth`: switches each rule of the HTTP layer off, one at a time, and expects a case of that rule to fail.

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use hapax_e2e::goal::Goal;
use hapax_e2e::http_teeth::TEETH;
use hapax_model::teeth::{self, Tally};

/// Checks that the HTTP cases find seeded defects.
#[derive(Parser)]
struct Args {
    /// Only defects whose name, or one of whose rules, contains this.
    #[arg(long, default_value = "")]
    only: String,
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    let Tally { caught, planted } = teeth::run(TEETH, &args.only)?;
    Ok(Goal::at_most("http-teeth", f64::from(planted - caught), 0.0).print_and_exit())
}
