//! The steps of `cargo xtask test`, cheapest first, so that small mistakes fail within seconds.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::catalogue::{
    CHAOS_SLICE, CLIENT_SLICE, CRASH_SLICE, EVENTS_MODEL_SLICE, FUZZ_SLICE_FLAGS, HTTP_SLICE, MODEL_SLICE,
    SIDECAR_SLICE, SIMULATION_SLICE, Slice,
};
use crate::goals::Goals;
use crate::programs::{self, CARGO_LIMIT};
use crate::rules::PassedTests;
use crate::tally::Tally;
use crate::timetable::End;
use crate::{features, fuzz, process, rules, tools};

/// Time limit of an example; examples are short.
const EXAMPLE_LIMIT: Duration = Duration::from_secs(60);

/// State shared by the steps of one run.
#[derive(Debug)]
pub(crate) struct Run {
    /// The workspace's root.
    pub(crate) root: PathBuf,
    /// Test cases counted so far.
    pub(crate) tally: Tally,
    /// The tests that passed so far.
    pub(crate) passed: PassedTests,
}

/// One step.
#[derive(Debug)]
pub(crate) struct Step {
    /// The name on the command line.
    pub(crate) name: &'static str,
    /// A one-line description.
    pub(crate) about: &'static str,
    /// Runs the step. Never returns `Ok(End::Failed)`: a failure is an `Err` with its cause.
    pub(crate) run: fn(&mut Run) -> Result<End>,
}

/// All steps, in the order in which they run.
pub(crate) const STEPS: &[Step] = &[
    Step { name: "tools", about: "system packages that the tests need, installed if missing", run: tools },
    Step { name: "fmt", about: "the code is formatted", run: fmt },
    Step { name: "deny", about: "licences, banned crates and sources of the dependencies", run: deny },
    Step { name: "clippy", about: "no lint in any target", run: clippy },
    Step {
        name: "features",
        about: "the library and the program build with each single feature",
        run: features,
    },
    Step { name: "tests", about: "unit, integration and tidy tests", run: tests },
    Step {
        name: "rules",
        about: "every rule of the protocol is covered by a test or a case that passed",
        run: rules,
    },
    Step { name: "doctests", about: "the examples in the documentation run", run: doctests },
    Step { name: "rustdoc", about: "the documentation builds without a warning", run: rustdoc },
    Step { name: "examples", about: "every example runs to its end", run: examples },
    Step { name: "model", about: "every interleaving of two executors", run: |run| slice(run, &MODEL_SLICE) },
    Step {
        name: "events-model",
        about: "every interleaving of broker, consumer, cache and redriver for one event, with every planted defect",
        run: |run| slice(run, &EVENTS_MODEL_SLICE),
    },
    Step {
        name: "simulation",
        about: "every scenario, await point and fault, and 20,000 random histories",
        run: |run| slice(run, &SIMULATION_SLICE),
    },
    Step {
        name: "crash",
        about: "the file store under kill -9 and a disk that loses unsynced writes, 300 rounds",
        run: |run| slice(run, &CRASH_SLICE),
    },
    Step {
        name: "http",
        about: "50 identical concurrent requests and clients that disconnect, 550 rounds",
        run: |run| slice(run, &HTTP_SLICE),
    },
    Step {
        name: "sidecar",
        about: "the sidecar under load and kill -9, 6,000 requests and 6 kills",
        run: |run| slice(run, &SIDECAR_SLICE),
    },
    Step {
        name: "client",
        about: "calls to a flaky service by a process under kill -9, with derived and with random keys, 200 calls and 10 kills",
        run: |run| slice(run, &CLIENT_SLICE),
    },
    Step {
        name: "chaos",
        about: "three sidecars on one Redis under all faults, 200,000 requests and 180 faults",
        run: |run| slice(run, &CHAOS_SLICE),
    },
    Step { name: "fuzz", about: "coverage-guided fuzzing of every parser, 20 s each", run: fuzz },
];

/// The steps of `cargo xtask test quick`, which need neither a server nor a system package.
pub(crate) const QUICK: &[Step] = &[
    Step { name: "fmt", about: "the code is formatted", run: fmt },
    Step { name: "clippy", about: "no lint in the core, the library and the file store", run: quick_clippy },
    Step { name: "tests", about: "tests of the core, the library and the file store", run: quick_tests },
];

/// Crates whose tests need no server.
const QUICK_CRATES: &[&str] =
    &["--package", "hapax-core", "--package", "hapax", "--package", "hapax-store-file", "--all-features"];

fn tools(_: &mut Run) -> Result<End> {
    tools::install_missing().map(|()| End::Passed)
}

fn fmt(run: &mut Run) -> Result<End> {
    cargo(run, &["fmt", "--all", "--check"]).context("not formatted; run `cargo fmt --all`")?;
    let fuzz = ["fmt", "--manifest-path", "fuzz/Cargo.toml"];
    cargo(run, &[&fuzz[..], &["--check"]].concat())
        .with_context(|| format!("not formatted; run `cargo {}`", fuzz.join(" ")))
}

fn deny(run: &mut Run) -> Result<End> {
    let mut command = Command::new(tools::cargo_deny(&run.root)?);
    // Without advisories: they need a database from the network and change independently of the tree.
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

/// The command that runs unit and integration tests of these packages: nextest if it is installed.
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
    // The binary and the library are both called `hapax` and share an output folder. The library is last, so that its
    // pages remain.
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
    goals.check(ended, slice.goals).map(|()| End::Passed)
}

fn fuzz(run: &mut Run) -> Result<End> {
    let mut goals = Goals::default();
    let ended = fuzz::run(&run.root, FUZZ_SLICE_FLAGS, &mut goals);
    goals.check(ended, &["fuzz-crashes"]).map(|()| End::Passed)
}

fn cargo(run: &Run, arguments: &[&str]) -> Result<End> {
    let mut command = programs::cargo(&run.root);
    process::run(command.args(arguments), CARGO_LIMIT, |_| {}).map(|()| End::Passed)
}

/// Runs a test runner, counts its cases and collects the passed ones. Output without a summary line is an error:
/// otherwise a runner with a changed output format would look like one without tests.
fn counted(run: &mut Run, mut command: Command) -> Result<End> {
    let before = run.tally.summary_lines();
    command.env("CARGO_TERM_COLOR", "never");
    process::run(&mut command, CARGO_LIMIT, |line| {
        run.tally.read(line);
        run.passed.read(line);
    })?;
    ensure!(run.tally.summary_lines() > before, "`{}` printed no summary line", process::shown(&command));
    Ok(End::Passed)
}

/// Creates the folder, emptied of the files of an earlier run.
fn fresh_folder(folder: &Path) -> Result<&Path> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("failed to remove {}", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("failed to create {}", folder.display()))?;
    Ok(folder)
}
