//! `hapax completions SHELL`: a script for the shell's start-up file.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Args;
use crate::failure::Failure;
use crate::output::Output;

pub(crate) fn run(shell: Shell, output: Output) -> Result<(), Failure> {
    output.never_json("a script for a shell")?;
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "hapax", &mut script);
    output.text(String::from_utf8_lossy(&script).trim_end())
}
