//! The subcommands, one file each, and their dispatch.

pub(crate) mod check;
#[cfg(feature = "client")]
mod client;
mod completions;
mod key;
mod man;
mod migrate;
pub(crate) mod plan;
mod records;
mod serve;
mod sweep;

use std::future::Future;

use crate::args::{Args, Command, Global};
use crate::config::{Config, Flags};
use crate::failure::{Code, Failure};
use crate::output::Output;
use crate::stores::StoreUrl;
use crate::telemetry::{self, LogOptions};

/// What the commands on a store share.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) store: StoreUrl,
    pub(crate) output: Output,
}

/// Runs the command.
pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let Args { global, command } = args;
    let output = Output::new(global.json);
    let context = || store(&global).map(|store| Context { store, output });
    // `serve` configures its own logs.
    if !matches!(command, Command::Serve(_)) {
        let level = if global.verbose { "debug" } else { "warn" };
        telemetry::logs(&LogOptions { level: level.to_owned(), ..LogOptions::default() })?;
    }
    match command {
        Command::Serve(serve) => serve::run(&serve, flags(&global), global.verbose, output),
        Command::Key(command) => key::run(&command, output),
        Command::Records(command) => {
            let context = context()?;
            block_on(records::run(&command, &context, &flags(&global)))
        }
        #[cfg(feature = "client")]
        Command::Client(command) => block_on(client::run(&command, output)),
        Command::Sweep(sweep) => {
            let context = context()?;
            block_on(sweep::run(&sweep, &context))
        }
        Command::Check(check) => block_on(check::run(&check, &flags(&global), output)),
        Command::Plan(plan) => plan::run(&plan, output),
        Command::Migrate(migrate) => {
            let context = context()?;
            block_on(migrate::run(&migrate, &context))
        }
        Command::Man { dir } => man::run(dir.as_deref(), output),
        Command::Completions { shell } => completions::run(shell, output),
    }
}

/// The configuration flags that all commands have.
fn flags(global: &Global) -> Flags {
    // Flag and variable of the store are read together, and both take precedence over the file.
    Flags::new(global.config.clone()).with("--store", ("store", "url"), global.store.clone()).with(
        "--fast",
        ("store", "fast"),
        global.fast.clone(),
    )
}

/// The store of a command on records. If it is given as a flag, the file is not read.
fn store(global: &Global) -> Result<StoreUrl, Failure> {
    match &global.store {
        Some(url) => StoreUrl::parse(url)?.with_fast_tier(global.fast.as_deref()),
        None => Config::load(&flags(global), std::env::vars_os()).map(|config| config.store),
    }
}

fn block_on(command: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Code::Failed, "cannot start").because(error))?
        .block_on(command)
}
