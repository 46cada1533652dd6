//! Command-line arguments and exit codes that the rigs' programs share.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use clap::{Args, Parser};
use hapax_model::teeth::{self, Tally, Tooth};

use super::program_beside;
use crate::goal::{self, Goal};

/// Faults of a kind that are printed; the rest are only counted.
pub const SHOWN_MAX: usize = 20;

/// The seed of a run.
#[derive(Args, Clone, Copy, Debug)]
pub struct SeedArg {
    /// Repeats the choices of an earlier run. Default: the time in milliseconds.
    #[arg(long)]
    seed: Option<u64>,
}

impl SeedArg {
    /// The seed that was given, or the time in milliseconds.
    ///
    /// # Errors
    /// When the clock is before 1970.
    pub fn value(self) -> Result<u64> {
        let now = || Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis() as u64);
        self.seed.map_or_else(now, Ok)
    }
}

/// The `hapax` under test.
#[derive(Args, Clone, Debug)]
pub struct ProgramArg {
    /// The `hapax` to run. Default: the one in the folder of this program.
    #[arg(long)]
    program: Option<PathBuf>,
}

impl ProgramArg {
    /// Where it is.
    ///
    /// # Errors
    /// When none was given and none is in the folder of this program.
    pub fn path(&self) -> Result<PathBuf> {
        self.program.clone().map_or_else(program_beside, Ok)
    }
}

/// Plants defects in a copy of the sources, one at a time, and expects a proof to find each.
#[derive(Parser)]
struct PlantArgs {
    /// Only defects whose name, or one of whose rules, contains this.
    #[arg(long, default_value = "")]
    only: String,
}

/// The whole program of a list of planted defects. Its goal counts those that no proof found.
///
/// # Errors
/// When a copy cannot be made or built.
pub fn find_planted_defects(defects: &[Tooth], name: &str) -> Result<ExitCode> {
    let Tally { caught, planted } = teeth::run(defects, &PlantArgs::parse().only)?;
    Ok(goal::print(&[Goal::at_most(name, f64::from(planted - caught), 0.0)]))
}
