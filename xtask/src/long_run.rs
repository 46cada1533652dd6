//! `cargo xtask bench` and `cargo xtask prove`: runs one entry of the catalogue in release mode and checks its goals.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::catalogue::{Entry, Runner};
use crate::goals::Goals;
use crate::{fuzz, nearest, process, programs, tools};

/// A proof may run for hours; its user stops it.
const NO_LIMIT: Duration = Duration::MAX;

/// Runs the entry that `typed` names, or lists all entries.
pub(crate) fn run(root: &Path, table: &[Entry], kind: &str, typed: &[String]) -> Result<()> {
    let Some((name, flags)) = typed.split_first() else {
        println!("{}", list(table));
        return Ok(());
    };
    let entry = find(table, kind, name)?;

    let mut goals = Goals::default();
    let ended = run_programs(root, entry, flags, &mut goals);
    println!();
    goals.lines().iter().for_each(|line| println!("{line}"));
    // A narrowed run does not reach every goal.
    let expected = if is_narrowed(entry, flags) { &[] } else { entry.goals };
    goals.check(ended, expected).with_context(|| format!("{kind} {name}"))
}

fn run_programs(root: &Path, entry: &Entry, flags: &[String], goals: &mut Goals) -> Result<()> {
    let main = entry.programs.iter().position(|program| !program.is_teeth);
    for (position, program) in entry.programs.iter().enumerate() {
        let typed = if main == Some(position) { flags } else { &[] };
        let own = defaults_unless_typed(program.flags, typed).iter().copied();
        let flags: Vec<&str> = own.chain(typed.iter().map(String::as_str)).collect();
        if !program.starts.is_empty() {
            let mut build = programs::cargo(root);
            build.args(["build", "--release", "--bins"]).args(program.starts);
            process::run(&mut build, programs::CARGO_LIMIT, |_| {})?;
        }
        let mut command = programs::cargo(root);
        match program.runner {
            Runner::Direct => command.args(["run", "--release", "--bin", program.bin]),
            Runner::Gungraun => {
                command.env("GUNGRAUN_RUNNER", tools::gungraun_runner(root)?);
                command.args(["bench", "--bench", program.bin])
            }
            Runner::Libfuzzer => {
                fuzz::run(root, &flags, goals)?;
                continue;
            }
        };
        command.args(["--package", program.package, "--features", &program.features.join(","), "--"]);
        command.args(flags);
        println!("── {}", process::shown(&command));
        process::run(&mut command, NO_LIMIT, |line| goals.read(line))?;
    }
    Ok(())
}

/// Whether a typed flag replaces a default flag of a program.
fn is_narrowed(entry: &Entry, typed: &[String]) -> bool {
    entry
        .programs
        .iter()
        .any(|program| defaults_unless_typed(program.flags, typed).len() < program.flags.len())
}

/// A program's default flags, unless the first of them was typed.
fn defaults_unless_typed<'a>(own: &'a [&'a str], typed: &[String]) -> &'a [&'a str] {
    let is_typed = |name: &&str| typed.iter().any(|flag| flag.split('=').next() == Some(name));
    if own.first().is_some_and(is_typed) { &[] } else { own }
}

fn find<'a>(table: &'a [Entry], kind: &str, name: &str) -> Result<&'a Entry> {
    match table.iter().find(|entry| entry.name == name) {
        Some(entry) => Ok(entry),
        None => {
            let hint = nearest::hint(name, table.iter().map(|entry| entry.name));
            bail!("unknown {kind} `{name}`{hint}\n\n{}", list(table))
        }
    }
}

fn list(table: &[Entry]) -> String {
    let lines: Vec<String> =
        table.iter().map(|entry| format!("{:<12} {}", entry.name, entry.about)).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests;
