//! The steps of `cargo xtask test`, cheapest first, so that a small mistake is told in seconds.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::catalogue::{
    CHAOS_SLICE, CRASH_SLICE, FUZZ_SLICE_FLAGS, HTTP_SLICE, MODEL_SLICE, SIDECAR_SLICE, SIMULATION_SLICE,
    Slice,
};
use crate::goals::Goals;
use crate::programs::{self, CARGO_LIMIT};
use crate::rules::Passed;
use crate::tally::Tally;
use crate::timetable::End;
use crate::{features, fuzz, process, rules, tools};

/// An example shows one thing and ends; one that needs a minute shows something else.
const EXAMPLE_LIMIT: Duration = Duration::from_secs(60);

/// What the steps of one run share.
#[derive(Debug)]
pub(crate) struct Run {
    /// The workspace's root.
    pub(crate) root: PathBuf,
    /// Test cases counted so far.
    pub(crate) tally: Tally,
    /// The tests that passed so far.
    pub(crate) passed: Passed,
}

/// One step.
#[derive(Debug)]
pub(crate) struct Step {
    /// What is typed to run it alone.
    pub(crate) name: &'static str,
    /// One line for the reader of the output.
    pub(crate) about: &'static str,
    /// Does it. `Ok(End::Failed)` is never returned: a fault is an `Err` that says what it is.
    pub(crate) run: fn(&mut Run) -> Result<End>,
}

/// All steps, in the order in which they run.
pub(crate) const STEPS: &[Step] = &[
    Step { name: "tools", about: "what the tests need beside Rust, installed if missing", run: tools },
    Step { name: "fmt", about: "the code is formatted", run: fmt },
    Step { name: "deny", about: "licences, banned crates and sources of the dependencies", run: deny },
    Step { name: "clippy", about: "no lint in any target", run: clippy },
    Step { name: "features", about: "the library builds with each of its features alone", run: features },
    Step { name: "tests", about: "unit, integration and tidy tests", run: tests },
    Step {
        name: "rules",
        about: "every rule of the protocol is held by a test or a case that passed",
        run: rules,
    },
    Step { name: "doctests", about: "the examples in the documentation run", run: doctests },
    Step { name: "rustdoc", about: "the documentation builds without a warning", run: rustdoc },
    Step { name: "examples", about: "every example runs to its end", run: examples },
    Step { name: "model", about: "every interleaving of two executors", run: |run| slice(run, &MODEL_SLICE) },
    Step {
        name: "simulation",
        about: "every scenario, await point and fault, and 20,000 random histories",
        run: |run| slice(run, &SIMULATION_SLICE),
    },
    Step {
        name: "crash",
        about: "the file store under kill -9 and a forgetful disk, 300 rounds",
        run: |run| slice(run, &CRASH_SLICE),
    },
    Step {
        name: "http",
        about: "50 identical requests at a time and clients that hang up, 550 rounds",
        run: |run| slice(run, &HTTP_SLICE),
    },
    Step {
        name: "sidecar",
        about: "the sidecar under load and kill -9, 6,000 requests and 6 kills",
        run: |run| slice(run, &SIDECAR_SLICE),
    },
    Step {
        name: "chaos",
        about: "three sidecars on one Redis while everything fails, 200,000 requests and 180 faults",
        run: |run| slice(run, &CHAOS_SLICE),
    },
    Step { name: "fuzz", about: "every parser under inputs that grow by coverage, 20 s each", run: fuzz },
];

/// The steps of `cargo xtask test quick`: what can be checked without a server or a system package.
pub(crate) const QUICK: &[Step] = &[
    Step { name: "fmt", about: "the code is formatted", run: fmt },
    Step { name: "clippy", about: "no lint in the core, the library and the file store", run: quick_clippy },
    Step { name: "tests", about: "tests of the core, the library and the file store", run: quick_tests },
];

/// The crates whose tests need no server.
const QUICK_CRATES: &[&str] =
    &["--package", "hapax-core", "--package", "hapax", "--package", "hapax-store-file", "--all-features"];

fn tools(_: &mut Run) -> Result<End> {
    tools::install_missing().map(|()| End::Passed)
}

fn fmt(run: &mut Run) -> Result<End> {
    cargo(run, &["fmt", "--all", "--check"]).context("not formatted, `cargo fmt --all` puts it right")?;
    let fuzz = ["fmt", "--manifest-path", "fuzz/Cargo.toml"];
    cargo(run, &[&fuzz[..], &["--check"]].concat())
        .with_context(|| format!("not formatted, `cargo {}` puts it right", fuzz.join(" ")))
}

fn deny(run: &mut Run) -> Result<End> {
    let mut command = Command::new(tools::cargo_deny(&run.root)?);
    // Advisories are left out: they need a database from the network and change without any change of ours.
    command.args(["check", "bans", "licenses", "sources"]).current_dir(&run.root);
    process::run(&mut command, CARGO_LIMIT, |_| {}).map(|()| End::Passed)
}

fn clippy(run: &mut Run) -> Result<End> {
    cargo(run, &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])
}

fn quick_clippy(run: &mut Run) -> Result<End> {
    cargo(run, &[&["clippy", "--all-targets"], QUICK_CRATES, &["--", "-D", "warnings"]].concat())
}

fn quick_tests(run: &mut Run) -> Result<End> {
    let command = test_runner(run, QUICK_CRATES);
    counted(run, command)
}

fn features(run: &mut Run) -> Result<End> {
    features::check(&run.root).map(|()| End::Passed)
}

fn tests(run: &mut Run) -> Result<End> {
    let reports = rules::case_folder()?;
    let mut command = test_runner(run, &["--workspace"]);
    command.env(rules::CASE_REPORT, fresh_folder(&reports)?);
    counted(run, command)
}

/// The command that runs unit and integration tests of these packages: nextest where it is installed.
fn test_runner(run: &Run, packages: &[&str]) -> Command {
    let mut command = programs::cargo(&run.root);
    if process::succeeds(programs::cargo(&run.root).args(["nextest", "--version"])) {
        command.args(["nextest", "run"]).args(packages);
    } else {
        command.args(["test", "--no-fail-fast", "--lib", "--bins", "--tests"]).args(packages);
    }
    command
}

fn rules(run: &mut Run) -> Result<End> {
    rules::check(&run.root, &run.passed).map(|()| End::Passed)
}

fn doctests(run: &mut Run) -> Result<End> {
    let mut command = programs::cargo(&run.root);
    command.args(["test", "--workspace", "--no-fail-fast", "--doc"]);
    counted(run, command)
}

fn rustdoc(run: &mut Run) -> Result<End> {
    // The command and the library are both called `hapax`. One after the other, so that they do not write to the
    // same folder together, and the library last, because its pages are the ones that people read.
    for kind in ["--bins", "--lib"] {
        let mut command = programs::cargo(&run.root);
        command.args(["doc", "--workspace", "--no-deps", kind]).env("RUSTDOCFLAGS", "-D warnings");
        process::run(&mut command, CARGO_LIMIT, |_| {})?;
    }
    Ok(End::Passed)
}

fn examples(run: &mut Run) -> Result<End> {
    let names = programs::examples(&run.root)?;
    if names.is_empty() {
        return Ok(End::Skipped("no crate has an example".to_owned()));
    }
    programs::build(&run.root)?;
    let built = programs::built()?;
    for name in &names {
        println!("── example {name}");
        let mut command = Command::new(built.join("examples").join(name));
        command.current_dir(fresh_folder(&built.join("example-runs").join(name))?);
        process::run(&mut command, EXAMPLE_LIMIT, |_| {})?;
    }
    Ok(End::Passed)
}

fn slice(run: &mut Run, slice: &Slice) -> Result<End> {
    programs::build(&run.root)?;
    let mut command = Command::new(programs::built()?.join(slice.program.bin));
    command.args(slice.program.flags).current_dir(&run.root);
    println!("── {}", process::shown(&command));
    let mut goals = Goals::default();
    let ended = process::run(&mut command, slice.limit, |line| goals.read(line));
    goals.judge(ended, slice.goals).map(|()| End::Passed)
}

fn fuzz(run: &mut Run) -> Result<End> {
    let mut goals = Goals::default();
    let ended = fuzz::run(&run.root, FUZZ_SLICE_FLAGS, &mut goals);
    goals.judge(ended, &["fuzz-crashes"]).map(|()| End::Passed)
}

fn cargo(run: &Run, arguments: &[&str]) -> Result<End> {
    let mut command = programs::cargo(&run.root);
    process::run(command.args(arguments), CARGO_LIMIT, |_| {}).map(|()| End::Passed)
}

/// Runs a test runner, counts its cases and remembers which passed. Output in which nothing can be counted is a failure: otherwise a
/// runner that changed its words would look like one that ran no test.
fn counted(run: &mut Run, mut command: Command) -> Result<End> {
    let before = run.tally.closing_lines();
    command.env("CARGO_TERM_COLOR", "never");
    process::run(&mut command, CARGO_LIMIT, |line| {
        run.tally.read(line);
        run.passed.read(line);
    })?;
    ensure!(run.tally.closing_lines() > before, "`{}` printed no closing line", process::shown(&command));
    Ok(End::Passed)
}

/// An empty folder: what an earlier run left behind must not change what this one does.
fn fresh_folder(folder: &Path) -> Result<&Path> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("failed to remove {}", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("failed to make {}", folder.display()))?;
    Ok(folder)
}
