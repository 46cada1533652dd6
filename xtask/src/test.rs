//! `cargo xtask test`: runs the steps in order, stops at the first failure and prints times and counts.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::nearest;
use crate::rules::PassedTests;
use crate::steps::{QUICK, Run, STEPS, Step};
use crate::tally::Tally;
use crate::timetable::{End, Timetable};

/// Selects the quick steps.
const QUICK_NAME: &str = "quick";

/// Runs all steps, the steps named in `typed`, or the quick ones.
pub(crate) fn run(root: &Path, typed: &[String]) -> Result<()> {
    let is_quick = matches!(typed, [typed] if typed == QUICK_NAME);
    let steps = if is_quick { QUICK.iter().collect() } else { chosen(STEPS, typed)? };
    // The quick steps share the names of the full ones and cannot be run one by one.
    let rerun = is_quick.then_some(QUICK_NAME);
    let mut run = Run { root: root.to_owned(), tally: Tally::default(), passed: PassedTests::default() };
    let mut table = Timetable::default();
    let ended = run_steps(&steps, &mut run, &mut table, rerun);
    println!("\n{table}\n");
    if run.tally.summary_lines() > 0 {
        println!("{}", run.tally);
    }
    ended
}

fn chosen<'a>(steps: &'a [Step], typed: &[String]) -> Result<Vec<&'a Step>> {
    for name in typed {
        if !steps.iter().any(|step| step.name == name) {
            let hint = nearest::hint(name, steps.iter().map(|step| step.name));
            let list: Vec<String> =
                steps.iter().map(|step| format!("{:<12} {}", step.name, step.about)).collect();
            bail!("unknown step `{name}`{hint}\n\n{}", list.join("\n"));
        }
    }
    let is_chosen = |step: &&Step| typed.is_empty() || typed.iter().any(|name| name == step.name);
    Ok(steps.iter().filter(is_chosen).collect())
}

fn run_steps(steps: &[&Step], run: &mut Run, table: &mut Timetable, rerun: Option<&str>) -> Result<()> {
    for step in steps {
        println!("\n━━ {}: {}", step.name, step.about);
        let started = Instant::now();
        let ended = (step.run)(run);
        let took = started.elapsed();
        match ended {
            Ok(end) => {
                report(step, &end, took);
                table.add(step.name, end, took);
            }
            Err(error) => {
                report(step, &End::Failed, took);
                table.add(step.name, End::Failed, took);
                let rerun = rerun.unwrap_or(step.name);
                bail!("step `{}` failed: {error:#}\nto run it again: cargo xtask test {rerun}", step.name);
            }
        }
    }
    Ok(())
}

fn report(step: &Step, end: &End, took: Duration) {
    println!("━━ {}: {end} ({:.1} s)", step.name, took.as_secs_f64());
}

#[cfg(test)]
mod tests;
