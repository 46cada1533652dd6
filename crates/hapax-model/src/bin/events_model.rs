//! Explores the consumer of events, then plants each defect and expects the same check to find it. See
//! [`hapax_model::events`] for the properties.
#![allow(clippy::print_stdout)]

use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use hapax_model::events::{Defect, EventBounds, check_events};

/// Explores every interleaving of broker, consumer, cache and redriver within bounds.
#[derive(Parser)]
struct Args {
    /// The bounds of the search without a defect.
    #[arg(long, value_enum, default_value = "small")]
    bounds: Bounds,
    /// Number of search threads.
    #[arg(long, default_value_t = 2)]
    threads: usize,
}

#[derive(Clone, Copy, ValueEnum)]
enum Bounds {
    Small,
    Large,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let bounds = match args.bounds {
        Bounds::Small => EventBounds::SMALL,
        Bounds::Large => EventBounds::LARGE,
    };
    let report = check_events(bounds, None, args.threads);
    println!("{report}");
    for violation in &report.violations {
        println!("violated {} after {} steps", violation.property, violation.path.len().saturating_sub(1));
        for (number, line) in violation.path.iter().enumerate() {
            println!("  {number:>2} {line}");
        }
    }
    let violations = report.violations.len();
    println!("goal events-model-violations measured {violations} target 0 {}", verdict(violations == 0));
    let mut caught = 0;
    for defect in Defect::ALL {
        let report = check_events(EventBounds::SMALL, Some(defect), args.threads);
        let found: Vec<_> = report.violations.iter().map(|violation| violation.property).collect();
        let breaks = defect.breaks().join(" or ");
        if report.caught(defect) {
            caught += 1;
            println!(
                "tooth {} breaks {breaks} caught by {} in {:.1} s",
                defect.name(),
                found.join(" "),
                report.time.as_secs_f64()
            );
        } else {
            println!("tooth {} breaks {breaks} NOT CAUGHT {}", defect.name(), found.join(" "));
        }
    }
    let planted = Defect::ALL.len();
    println!("goal events-model-teeth measured {caught} target {planted} {}", verdict(caught == planted));
    ExitCode::from(u8::from(violations > 0 || caught != planted))
}

const fn verdict(is_met: bool) -> &'static str {
    if is_met { "ok" } else { "short" }
}
