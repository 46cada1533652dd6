//! Drives services in turn, round by round, and prints their figures relative to the first one.
#![allow(clippy::print_stdout, reason = "the figures are what the benchmarks are for")]

use std::time::Duration;

use super::{Round, Scenario};
use crate::bench_store::Sample;

/// A service relative to the first one: medians of the ratios in the same round.
#[derive(Clone, Copy, Debug)]
pub struct Beside {
    /// The ratio of its requests per second to those of the first one.
    pub rate: f64,
    /// The ratio of the first one's CPU time for a request to its own.
    pub cpu: f64,
}

/// Drives every service for `span` in each of so many rounds, after a warm-up round, and prints the figures.
pub fn compare(scenarios: &[Scenario], rounds: usize, span: Duration) -> Vec<Beside> {
    let mut measured: Vec<Vec<Round>> = scenarios.iter().map(|_| Vec::new()).collect();
    for round in 0..=rounds {
        for (scenario, measured) in scenarios.iter().zip(&mut measured) {
            let one = scenario.round(span);
            if round > 0 {
                measured.push(one);
            }
        }
    }
    println!(
        "{:30} {:>9} {:>6} {:>13} {:>9} {:>13} {:>9} {:>6} {:>7}",
        "", "req/s", "ratio", "(from to)", "CPU µs", "(quartiles)", "server µs", "busy", "allocs"
    );
    scenarios.iter().zip(&measured).map(|(scenario, own)| show(scenario, own, &measured[0], span)).collect()
}

/// Prints a service's figures.
fn show(scenario: &Scenario, own: &[Round], first: &[Round], span: Duration) -> Beside {
    let beside = |ratio: fn(&Round, &Round) -> f64| {
        own.iter().zip(first).map(|(own, first)| ratio(own, first)).collect::<Sample>()
    };
    let rates = beside(|own, first| own.rate / first.rate);
    let cpu = beside(|own, first| first.cpu_micros / own.cpu_micros);
    let figures = |figure: fn(&Round) -> f64| own.iter().map(figure).collect::<Sample>();
    let micros = figures(|round| round.cpu_micros);
    println!(
        "{:30} {:9.0} {:6.2} {:>13} {:9.2} {:>13} {:9.2} {:6.2} {:7.1}",
        scenario.name,
        figures(|round| round.rate).median(),
        rates.median(),
        format!("({:.2} {:.2})", rates.quantile(0.0), rates.quantile(1.0)),
        micros.median(),
        format!("({:.2} {:.2})", micros.quantile(0.25), micros.quantile(0.75)),
        figures(|round| round.server_micros).median(),
        figures(|round| round.server_busy).median(),
        scenario.allocations(span),
    );
    Beside { rate: rates.median(), cpu: cpu.median() }
}
