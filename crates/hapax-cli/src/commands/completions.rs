//! `hapax completions SHELL`: prints a completion script.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Args;
use crate::failure::Failure;
use crate::output::Output;

pub(crate) fn run(shell: Shell, output: Output) -> Result<(), Failure> {
    output.never_json("a completion script")?;
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "hapax", &mut script);
    output.text(String::from_utf8_lossy(&script).trim_end())
}
