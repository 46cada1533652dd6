//! Runs the `hapax` binary and checks its output.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::RwLock;

use serde_json::Value;

/// The output and exit code of a run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    fn new(output: Output) -> Self {
        Self {
            code: output.status.code().expect("an exit code"),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Asserts the exit code.
    #[track_caller]
    pub(crate) fn ended(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        self
    }

    /// Asserts that the run failed with the error `name`, printed without internals.
    #[track_caller]
    pub(crate) fn failed(self, code: i32, name: &str) -> Self {
        let run = self.ended(code);
        assert!(run.stderr.contains(&format!("error[{name}]: ")), "{run:?}");
        assert_eq!(run.stdout, "", "errors are not printed to stdout");
        for noise in ["panicked at", "backtrace", "StoreError {", "Os {"] {
            assert!(!run.stderr.contains(noise), "{run:?}");
        }
        run
    }

    /// The output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// The command in `dir`, without the environment variables of the tests.
pub(crate) fn command(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hapax"));
    command.current_dir(dir).stdin(Stdio::null());
    forget_variables(&mut command);
    command
}

/// Removes the variables of the tests from a child process: the command refuses those that are not options.
pub(crate) fn forget_variables(command: &mut Command) {
    let ours = std::env::vars_os().map(|(name, _)| name);
    let is_read = |name: &str| name.starts_with("HAPAX_") || name.starts_with("OTEL_");
    for name in ours.filter(|name| is_read(&name.to_string_lossy())) {
        command.env_remove(name);
    }
}

/// A forked child holds all descriptors of this process until it executes its own program, including the locks of stores
/// that other tests have open. Tests that open and close a store read-lock this; tests that start a child write-lock it.
pub(crate) static STARTING: RwLock<()> = RwLock::new(());

/// Starts the command.
pub(crate) fn started(command: &mut Command) -> Child {
    alone(|| command.spawn().unwrap())
}

/// Starts another process, while no test opens a store.
pub(crate) fn alone<T>(start: impl FnOnce() -> T) -> T {
    let _alone = STARTING.write().unwrap_or_else(|test_that_failed| test_that_failed.into_inner());
    start()
}

/// Kills a process group and waits for its leader.
#[cfg(unix)]
pub(crate) fn end_group(leader: &mut Child) {
    let group = format!("-{}", leader.id());
    let _ = started(Command::new("kill").args(["-s", "KILL", "--", &group])).wait();
    let _ = leader.wait();
}

/// Runs the command until it exits.
pub(crate) fn run(command: &mut Command) -> Run {
    let child = started(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    Run::new(child.wait_with_output().unwrap())
}

/// Runs `hapax ARGS` in `dir`.
pub(crate) fn hapax(dir: &Path, args: &[&str]) -> Run {
    run(command(dir).args(args))
}

/// Runs `hapax ARGS` in `dir` with the store URL in the environment.
pub(crate) fn hapax_with_store(dir: &Path, store: &str, args: &[&str]) -> Run {
    run(command(dir).env("HAPAX_STORE_URL", store).args(args))
}
