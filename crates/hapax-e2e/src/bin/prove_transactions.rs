//! Kills processes, the server and the pooler under operations in transactions: `cargo xtask prove transactions`.
#![allow(clippy::print_stdout, reason = "the report is what this program is for")]

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::{Parser, Subcommand};
use hapax_core::Promise;
use hapax_e2e::goal::{self, Goal};
use hapax_e2e::rig::Damage;
use hapax_e2e::transactions::{Defect, Mode, Orders, RoundReport, ServerPath, TransactionRig};

/// Planted defects: the mode, the defect, and the kind of damage that must be found within so many rounds.
const TEETH: [Tooth; 3] = [
    (Mode::Function, Defect::Apart, |damage| &damage.doubles),
    (Mode::Function, Defect::Early, |damage| &damage.wrong),
    (Mode::Handler, Defect::Apart, |damage| &damage.doubles),
];
const TEETH_ROUNDS_MAX: u64 = 50;

type Tooth = (Mode, Defect, fn(&Damage) -> &Vec<String>);

/// Kills processes, the server and the pooler under operations in transactions.
#[derive(Parser, Debug)]
struct Args {
    /// Kills for each mode and each path to the server.
    #[arg(long, default_value_t = 100)]
    rounds: u64,
    /// Where transactions come from.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Mode::ALL)]
    modes: Vec<Mode>,
    /// How processes reach the server.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = ServerPath::ALL)]
    paths: Vec<ServerPath>,
    /// Seconds without any answer after which keys are stuck.
    #[arg(long, default_value_t = 300)]
    patience: u64,
    #[command(subcommand)]
    role: Option<Role>,
}

#[derive(Subcommand, Debug)]
enum Role {
    /// The process that is killed.
    #[command(hide = true)]
    Child(Orders),
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    if let Some(Role::Child(orders)) = args.role {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        runtime.block_on(orders.run())?;
        return Ok(ExitCode::SUCCESS);
    }
    let program = std::env::current_exe()?;
    let patience = Duration::from_secs(args.patience);
    let mut total = RoundReport::default();
    for (mode, path) in args.modes.iter().flat_map(|mode| args.paths.iter().map(move |path| (*mode, *path))) {
        let started = Instant::now();
        let mut rig = TransactionRig::start(&program, mode, path, patience)?;
        let mut report = RoundReport::default();
        for _ in 0..args.rounds {
            report += rig.round(None)?;
        }
        report.damage.stuck.extend(rig.unfinished());
        println!(
            "{mode}, {path}: {} keys, {} answers, {} kills, {:.1} s",
            report.keys,
            report.answers,
            report.kills,
            started.elapsed().as_secs_f64()
        );
        total += report;
    }
    let mut missed = 0;
    for tooth in TEETH.into_iter().filter(|(mode, ..)| args.modes.contains(mode)) {
        let rounds = rounds_to_find(&program, tooth, patience)?;
        let (mode, defect, _) = tooth;
        match rounds {
            Some(rounds) => println!("{mode}, defect {defect}: found in round {rounds}"),
            None => println!("{mode}, defect {defect}: NOT FOUND"),
        }
        missed += u32::from(rounds.is_none());
    }
    let promise = Promise::AtMostOnce;
    total.damage.violations("transactions", promise).iter().for_each(|line| println!("{line}"));
    let mut goals = total.damage.goals("transactions", promise);
    goals.push(Goal::at_most("transactions-teeth", f64::from(missed), 0.0));
    Ok(goal::print(&goals))
}

/// The first round in which a planted defect was found.
fn rounds_to_find(program: &Path, tooth: Tooth, patience: Duration) -> Result<Option<u64>> {
    let (mode, defect, damage) = tooth;
    let mut rig = TransactionRig::start(program, mode, ServerPath::Direct, patience)?;
    for round in 1..=TEETH_ROUNDS_MAX {
        if !damage(&rig.round(Some(defect))?.damage).is_empty() {
            return Ok(Some(round));
        }
    }
    Ok(None)
}
