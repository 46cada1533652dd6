//! The binary `hapax`: parses the arguments, sets up logs, runs the command and returns its exit code.
//!
//! | module | contents |
//! |---|---|
//! | [`args`] | the command-line arguments |
//! | [`config`] | the configuration, from flags, environment and file |
//! | [`serve`] | the sidecar: assembly, signals, reload, shutdown |
//! | [`demo`] | the built-in orders API |
//! | [`telemetry`] | the setup of logs and metrics |
//! | [`trace`] | spans, and their export to a collector |
//! | [`stores`] | store URLs, and how stores are opened |
//! | [`commands`] | the subcommands, one file each |
//! | [`http_client`] | the HTTP client for callouts, spans and the admin API |
//! | [`proxy`] | the reverse proxy: connections to clients and upstreams |
//! | [`retention`] | the retention of a settled record, by its route |
//! | [`admin_client`] | the commands' client of the admin API |
//! | [`output`] | stdout: tables, plain text, JSON |
//! | [`progress`] | a progress line on the terminal |
//! | [`confirm`] | the confirmation of a change |
//! | [`nearest`] | suggestions for misspelled words |
//! | [`signals`] | shutdown and reload signals |
//! | [`failure`] | the exit codes of failures, and their report |

mod admin_client;
mod args;
mod commands;
mod config;
mod confirm;
mod demo;
mod failure;
mod http_client;
mod nearest;
mod output;
mod problem;
mod progress;
mod proxy;
mod retention;
mod serve;
mod signals;
mod stores;
mod telemetry;
mod trace;

use std::process::ExitCode;

use clap::Parser;

/// Each request allocates blocks that are too large for the per-thread caches of the C library (decision 23).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = args::Args::try_parse().unwrap_or_else(|error| args::explain(error).exit());
    let json = args.global.json;
    match commands::run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure::report(&failure, json);
            failure::exit_code(&failure)
        }
    }
}
