//! `cargo xtask prove fuzz`: builds the targets of `fuzz/` with coverage instrumentation, runs each for a while and
//! counts the crashes.

mod build;
mod report;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use self::report::{FuzzRun, Report};
use crate::goals::Goals;
use crate::{nearest, process, programs};

/// Additional time for start-up, seeds and the corpus, beyond the time limit of a target.
const STARTUP_MAX: Duration = Duration::from_secs(5 * 60);

/// One input takes microseconds; this leaves room for a machine with other things to do.
const INPUT_SECONDS_MAX: u32 = 5;

/// A target normally takes some 30 MB; an input that exceeds this limit is a crash.
const MEMORY_MB_MAX: u32 = 1024;

/// The flags of `prove fuzz`.
#[derive(Debug, PartialEq, Eq)]
struct Flags<'a> {
    /// The run time of each target.
    seconds: u32,
    /// The only target to run; all if `None`.
    target: Option<&'a str>,
}

/// Runs the targets with the flags `--seconds N` and `--target NAME`, and adds their goal to `goals`.
pub(crate) fn run(root: &Path, flags: &[&str], goals: &mut Goals) -> Result<()> {
    let flags = read_flags(flags)?;
    let targets = chosen(targets(root)?, flags.target)?;
    let folder = programs::built()?.join("fuzz");
    let built = build::build(root, &folder.join("build"))?;

    let mut crashes = 0;
    for target in &targets {
        let program = built.join(target);
        ensure!(program.is_file(), "fuzz/Cargo.toml has no [[bin]] for fuzz/fuzz_targets/{target}.rs");
        match run_target(root, &folder, &program, target, flags.seconds)? {
            FuzzRun::Completed { executions } => {
                println!("{target:<16} {executions:>12} executions, no crash")
            }
            FuzzRun::Crashed { executions, input } => {
                crashes += 1;
                println!("{target:<16} {executions:>12} executions, CRASHED by {input}");
                println!("reproduce: {} {input}", program.display());
            }
        }
    }
    let verdict = if crashes == 0 { "ok" } else { "short" };
    let line = format!("goal fuzz-crashes measured {crashes} target 0 {verdict}");
    println!("{line}");
    goals.read(&line);
    Ok(())
}

fn run_target(root: &Path, folder: &Path, program: &Path, target: &str, seconds: u32) -> Result<FuzzRun> {
    // The corpus is kept: the next run starts from it.
    let found = create_folder(folder.join("corpus").join(target))?;
    let crashes = create_folder(folder.join("crashes").join(target))?;
    let mut command = Command::new(program);
    command
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-timeout={INPUT_SECONDS_MAX}"))
        .arg(format!("-rss_limit_mb={MEMORY_MB_MAX}"))
        .arg(format!("-artifact_prefix={}/", crashes.display()))
        .args(["-print_final_stats=1", "-verbosity=0"])
        .arg(found)
        .arg(root.join("fuzz/seeds").join(target))
        .current_dir(folder);
    println!("── fuzz {target} for {seconds} s");
    let mut report = Report::default();
    let limit = Duration::from_secs(seconds.into()) + STARTUP_MAX;
    let ended = process::run_quiet(&mut command, limit, |line| {
        if report::is_worth_showing(line) {
            println!("{line}");
        }
        report.read(line);
    });
    report.classify(ended).with_context(|| format!("fuzz target {target}"))
}

/// The names of all targets, sorted.
fn targets(root: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for file in programs::entries(&root.join("fuzz/fuzz_targets"))? {
        if let Some(stem) = file.file_stem().filter(|_| file.extension().is_some_and(|kind| kind == "rs")) {
            names.push(stem.to_string_lossy().into_owned());
        }
    }
    names.sort();
    ensure!(!names.is_empty(), "no target in fuzz/fuzz_targets");
    Ok(names)
}

fn chosen(targets: Vec<String>, typed: Option<&str>) -> Result<Vec<String>> {
    let Some(name) = typed else { return Ok(targets) };
    if !targets.iter().any(|target| target == name) {
        let hint = nearest::hint(name, targets.iter().map(String::as_str));
        bail!("unknown fuzz target `{name}`{hint}\n\n{}", targets.join("\n"));
    }
    Ok(vec![name.to_owned()])
}

fn read_flags<'a>(flags: &[&'a str]) -> Result<Flags<'a>> {
    let mut read = Flags { seconds: 0, target: None };
    let mut parts = flags.iter().flat_map(|flag| flag.splitn(2, '='));
    while let Some(name) = parts.next() {
        let value = parts.next().with_context(|| format!("`{name}` needs a value"))?;
        match name {
            "--seconds" => {
                read.seconds =
                    value.parse().with_context(|| format!("`--seconds {value}` is not a number"))?;
            }
            "--target" => read.target = Some(value),
            _ => bail!("unknown flag `{name}`; expected `--seconds N` or `--target NAME`"),
        }
    }
    // Libfuzzer treats zero as unlimited.
    ensure!(read.seconds > 0, "`--seconds` must be at least 1");
    Ok(read)
}

fn create_folder(folder: PathBuf) -> Result<PathBuf> {
    fs::create_dir_all(&folder).with_context(|| format!("failed to create {}", folder.display()))?;
    Ok(folder)
}

#[cfg(test)]
mod tests;
