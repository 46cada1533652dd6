//! The binary `hapax`: parse what was typed, set up logs, run, turn the result into an exit code.
//!
//! | module | what it owns |
//! |---|---|
//! | [`args`] | what can be typed |
//! | [`config`] | what the sidecar runs with, wherever it was said |
//! | [`serve`] | the sidecar: its parts put together, signals, reloading, ending |
//! | [`demo`] | the built-in orders API |
//! | [`telemetry`] | how logs and metrics are written |
//! | [`trace`] | spans, and their way to a collector |
//! | [`stores`] | URL to store: the only list of stores |
//! | [`commands`] | one file per subcommand |
//! | [`exchanges`] | what we ask of others in our own name |
//! | [`proxy`] | connections of clients and to the origin |
//! | [`admin`] | the admin listener: health, metrics, API, audit log |
//! | [`console`] | the pages for people |
//! | [`records`] | looking at records and changing them |
//! | [`view`] | a record as people and programs see it |
//! | [`output`] | stdout: tables, plain text, JSON |
//! | [`progress`] | the line on the terminal for people who wait |
//! | [`confirm`] | the question before something is changed |
//! | [`nearest`] | the known word that was meant |
//! | [`signals`] | what the operating system asks |
//! | [`time`] | durations and moments as text |
//! | [`failure`] | every error with its code, its exit code and what to do about it |

mod admin;
mod args;
mod commands;
mod config;
mod confirm;
mod console;
mod demo;
mod exchanges;
mod failure;
mod nearest;
mod output;
mod problem;
mod progress;
mod proxy;
mod records;
mod serve;
mod signals;
mod stores;
mod telemetry;
mod time;
mod trace;
mod view;

use std::process::ExitCode;

use clap::Parser;

/// Every request has blocks that are too large for what the C library keeps at hand for a thread (decision 23).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = args::Args::try_parse().unwrap_or_else(|error| args::explain(error).exit());
    let json = args.global.json;
    match commands::run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.report(json);
            failure.exit_code()
        }
    }
}
