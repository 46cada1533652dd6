//! One file per subcommand; this one hands over to them.

mod check;
mod completions;
mod key;
mod records;
mod sweep;

use std::future::Future;

use crate::args::{Args, Command};
use crate::failure::{Code, Failure};
use crate::output::Output;
use crate::stores::StoreUrl;

/// What every command on a store needs.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) store: StoreUrl,
    pub(crate) output: Output,
}

/// Runs what was typed.
pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let output = Output::new(args.global.json);
    let context = || StoreUrl::parse(&args.global.store).map(|store| Context { store, output });
    match args.command {
        Command::Key(command) => key::run(&command, output),
        Command::Records(command) => {
            let context = context()?;
            block_on(records::run(&command, &context))
        }
        Command::Sweep(sweep) => {
            let context = context()?;
            block_on(sweep::run(&sweep, &context))
        }
        Command::Check(check) => {
            let context = context()?;
            block_on(check::run(&check, &context))
        }
        Command::Completions { shell } => completions::run(shell, output),
    }
}

fn block_on(command: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Code::Failed, "cannot start").because(error))?
        .block_on(command)
}
