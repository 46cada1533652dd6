//! Mutation test: plants each defect of [`hapax_model::teeth`] in a copy of the sources and expects its proof to find it.
#![allow(clippy::print_stdout)]

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use hapax_model::teeth::{self, Tally};

/// Checks that the proofs find planted defects.
#[derive(Parser)]
struct Args {
    /// Only defects whose name, or one of whose properties, contains this.
    #[arg(long, default_value = "")]
    only: String,
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    let Tally { caught, planted } = teeth::run(teeth::all(), &args.only)?;
    let verdict = if caught == planted { "ok" } else { "short" };
    println!("goal model-teeth measured {caught} target {planted} {verdict}");
    Ok(ExitCode::from(u8::from(caught != planted)))
}
