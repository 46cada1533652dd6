//! `cargo xtask bench` and `cargo xtask prove`: one entry of a table, built for speed, judged by its goals.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::catalogue::{Entry, Runner};
use crate::goals::Goals;
use crate::{fuzz, nearest, process, programs, tools};

/// A proof may be asked to go on for hours; whoever started it also ends it.
const NO_LIMIT: Duration = Duration::MAX;

/// Runs the entry that `typed` names, or lists what there is.
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
    // Whoever asks for less is not told what is missing.
    let expected = if is_narrowed(entry, flags) { &[] } else { entry.goals };
    goals.judge(ended, expected).with_context(|| format!("{kind} {name}"))
}

fn run_programs(root: &Path, entry: &Entry, flags: &[String], goals: &mut Goals) -> Result<()> {
    let main = entry.programs.iter().position(|program| !program.is_teeth);
    for (position, program) in entry.programs.iter().enumerate() {
        let typed = if main == Some(position) { flags } else { &[] };
        let own = unless_typed(program.flags, typed).iter().copied();
        let flags: Vec<&str> = own.chain(typed.iter().map(String::as_str)).collect();
        if !program.starts.is_empty() {
            let mut build = programs::cargo(root);
            build.args(["build", "--release", "--bins"]).args(program.starts);
            process::run(&mut build, programs::CARGO_LIMIT, |_| {})?;
        }
        let mut command = programs::cargo(root);
        match program.runner {
            Runner::Itself => command.args(["run", "--release", "--bin", program.bin]),
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

/// Whether what is typed takes the place of something that a program would do by itself.
fn is_narrowed(entry: &Entry, typed: &[String]) -> bool {
    entry.programs.iter().any(|program| unless_typed(program.flags, typed).len() < program.flags.len())
}

/// A program's own flags, unless the first of them was typed with another value.
fn unless_typed<'a>(own: &'a [&'a str], typed: &[String]) -> &'a [&'a str] {
    let is_typed = |name: &&str| typed.iter().any(|flag| flag.split('=').next() == Some(name));
    if own.first().is_some_and(is_typed) { &[] } else { own }
}

fn find<'a>(table: &'a [Entry], kind: &str, name: &str) -> Result<&'a Entry> {
    match table.iter().find(|entry| entry.name == name) {
        Some(entry) => Ok(entry),
        None => {
            let hint = nearest::hint(name, table.iter().map(|entry| entry.name));
            bail!("`{kind}` knows no `{name}`{hint}\n\n{}", list(table))
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
