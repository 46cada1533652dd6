//! Explores the protocol and prints the result. See the crate's documentation for the properties.
#![allow(clippy::print_stdout)]

use std::process::ExitCode;

use clap::Parser;
use hapax_model::{Bounds, Mode, Report, Until, check};

/// Explores every interleaving of the protocol within bounds.
#[derive(Parser)]
struct Args {
    /// Number of executors.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(2..=3))]
    executors: u8,
    /// Mode: amo, alo, t or all.
    #[arg(long, default_value = "all", value_parser = modes)]
    mode: Modes,
    /// Number of search threads.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Stop only at a violation of one of these properties.
    #[arg(long, value_delimiter = ',')]
    until: Vec<String>,
}

#[derive(Clone)]
struct Modes(Vec<Mode>);

fn modes(name: &str) -> Result<Modes, String> {
    match Mode::from_name(name) {
        Some(mode) => Ok(Modes(vec![mode])),
        None if name == "all" => Ok(Modes(Mode::ALL.to_vec())),
        None => Err("expected amo, alo, t or all".to_owned()),
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    let until = if args.until.is_empty() { Until::AnyViolation } else { Until::Violated(args.until) };
    let mut violations = 0;
    println!("{}", Report::HEAD);
    for mode in args.mode.0 {
        let bounds = if args.executors == 3 { Bounds::three(mode) } else { Bounds::two(mode) };
        let report = check(mode, bounds, args.threads, &until);
        println!("{report}");
        for violation in &report.violations {
            let steps = violation.path.len().saturating_sub(1);
            println!("violated {} in mode {} after {steps} steps", violation.property, mode.name());
            for (number, line) in violation.path.iter().enumerate() {
                println!("  {number:>2} {line}");
            }
        }
        violations += report.violations.len();
        if let Until::Violated(names) = &until
            && report.violations.iter().any(|violation| names.iter().any(|name| name == violation.property))
        {
            break;
        }
    }
    let verdict = if violations == 0 { "ok" } else { "short" };
    println!("goal model-violations measured {violations} target 0 {verdict}");
    ExitCode::from(u8::from(violations > 0))
}
