//! The binary `hapax`: parse what was typed, set up logs, run, turn the result into an exit code.
//!
//! | module | what it owns |
//! |---|---|
//! | [`args`] | what can be typed |
//! | [`stores`] | URL to store: the only list of stores |
//! | [`commands`] | one file per subcommand |
//! | [`admin`] | the admin listener: health, metrics, API, audit log |
//! | [`console`] | the pages for people |
//! | [`records`] | looking at records and changing them |
//! | [`view`] | a record as people and programs see it |
//! | [`output`] | stdout: tables, plain text, JSON |
//! | [`confirm`] | the question before something is changed |
//! | [`time`] | durations and moments as text |
//! | [`failure`] | every error with its code, its exit code and what to do about it |

#[allow(dead_code, reason = "`hapax serve` starts it")]
mod admin;
mod args;
mod commands;
mod confirm;
#[allow(dead_code, reason = "the admin listener shows it")]
mod console;
mod failure;
mod output;
mod records;
mod stores;
mod time;
mod view;

use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::filter::LevelFilter;

fn main() -> ExitCode {
    let args = args::Args::parse();
    set_up_logs(args.global.verbose);
    let json = args.global.json;
    match commands::run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.report(json);
            failure.exit_code()
        }
    }
}

fn set_up_logs(verbose: bool) {
    let level = if verbose { LevelFilter::DEBUG } else { LevelFilter::WARN };
    tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr).init();
}
