//! `cargo xtask`: developer commands. This file parses the command line and dispatches.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the output of a command-line program")]

mod catalogue;
mod features;
mod fuzz;
mod goals;
mod long_run;
mod nearest;
mod process;
mod programs;
mod rules;
mod steps;
mod tally;
mod test;
mod timetable;
mod tools;

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

const USAGE: &str = "\
usage: cargo xtask test [STEP ...]           everything CI runs, or only the steps named
       cargo xtask test quick                format, lints and tests that need no server
       cargo xtask bench [NAME [FLAGS]]      one benchmark; without a name, the list
       cargo xtask prove [NAME [FLAGS]]      one long proof; without a name, the list

FLAGS go to the program that is run.";

fn main() -> ExitCode {
    let typed: Vec<String> = env::args().skip(1).collect();
    match dispatch(&typed) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(typed: &[String]) -> Result<()> {
    let Some((command, rest)) = typed.split_first() else { bail!("no command given\n\n{USAGE}") };
    match command.as_str() {
        "test" => test::run(&root()?, rest),
        "bench" => long_run::run(&root()?, catalogue::BENCHES, "bench", rest),
        "prove" => long_run::run(&root()?, catalogue::PROOFS, "prove", rest),
        "help" | "--help" | "-h" => {
            println!("{USAGE}");
            Ok(())
        }
        other => {
            let hint = nearest::hint(other, ["test", "bench", "prove"]);
            bail!("unknown command `{other}`{hint}\n\n{USAGE}")
        }
    }
}

/// The workspace root, from cargo's environment at run time: a build shared by two checkouts must not embed the path of
/// one.
fn root() -> Result<PathBuf> {
    let own = env::var_os("CARGO_MANIFEST_DIR").context("start this through `cargo xtask`")?;
    let root = PathBuf::from(own).parent().map(PathBuf::from);
    root.context("the folder of xtask has no parent")
}
