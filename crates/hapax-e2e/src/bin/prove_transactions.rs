//! Kills processes, the server and the pooler under work in transactions: `cargo xtask prove transactions`.
#![allow(clippy::print_stdout, reason = "the report is what this program is for")]

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::{Parser, Subcommand};
use hapax_e2e::goal::{self, Goal};
use hapax_e2e::transactions::{Defect, Mode, Orders, Report, Rig, Way};

/// Defects, where each is planted, and what it does. Every one must be found within so many rounds.
const TEETH: [Tooth; 3] = [
    (Mode::Function, Defect::Apart, |report| &report.doubles),
    (Mode::Function, Defect::Early, |report| &report.wrong),
    (Mode::Handler, Defect::Apart, |report| &report.doubles),
];
const TEETH_ROUNDS_MAX: u64 = 50;

type Tooth = (Mode, Defect, fn(&Report) -> &Vec<String>);

/// Faults of a kind that are printed; the rest are counted.
const SHOWN_MAX: usize = 20;

#[derive(Parser, Debug)]
#[command(about = "Kills processes, the server and the pooler under work in transactions")]
struct Args {
    /// Kills for each mode on each way to the server.
    #[arg(long, default_value_t = 100)]
    rounds: u64,
    /// Where transactions come from.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Mode::ALL)]
    modes: Vec<Mode>,
    /// How the server is reached.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Way::ALL)]
    ways: Vec<Way>,
    /// Seconds without any answer after which keys are stuck.
    #[arg(long, default_value_t = 300)]
    patience: u64,
    #[command(subcommand)]
    role: Option<Role>,
}

#[derive(Subcommand, Debug)]
enum Role {
    /// Be the process that is killed.
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
    let mut total = Report::default();
    for (mode, way) in args.modes.iter().flat_map(|mode| args.ways.iter().map(move |way| (*mode, *way))) {
        let started = Instant::now();
        let mut rig = Rig::start(&program, mode, way, patience)?;
        let mut report = Report::default();
        for _ in 0..args.rounds {
            report += rig.round(None)?;
        }
        report.stuck.extend(rig.unfinished());
        println!(
            "{mode}, {way}: {} keys, {} answers, {} kills, {:.1} s",
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
    let damage = [
        ("doubles", &total.doubles),
        ("lost", &total.lost),
        ("wrong", &total.wrong),
        ("stuck", &total.stuck),
    ];
    for (kind, faults) in damage {
        faults.iter().take(SHOWN_MAX).for_each(|fault| println!("violated {kind}: {fault}"));
    }
    let goal = |(kind, faults): (&str, &Vec<String>)| {
        Goal::at_most(&format!("transactions-{kind}"), faults.len() as f64, 0.0)
    };
    let mut goals: Vec<Goal> = damage.into_iter().map(goal).collect();
    goals.push(Goal::at_most("transactions-teeth", f64::from(missed), 0.0));
    goals.iter().for_each(Goal::print);
    Ok(goal::exit(&goals))
}

/// The first round in which a planted defect did damage.
fn rounds_to_find(program: &Path, tooth: Tooth, patience: Duration) -> Result<Option<u64>> {
    let (mode, defect, damage) = tooth;
    let mut rig = Rig::start(program, mode, Way::Direct, patience)?;
    for round in 1..=TEETH_ROUNDS_MAX {
        if !damage(&rig.round(Some(defect))?).is_empty() {
            return Ok(Some(round));
        }
    }
    Ok(None)
}
