//! Services driven in turn, round by round, and the table of what they came to beside the first one.
#![allow(clippy::print_stdout, reason = "the figures are what the benchmarks are for")]

use std::time::Duration;

use super::{Round, Scenario};

/// A service beside the first one: medians of the ratios in the same round.
#[derive(Clone, Copy, Debug)]
pub struct Beside {
    /// Its requests a second, to those of the first one.
    pub rate: f64,
    /// The CPU time of a request to the first one, to that of a request to this one.
    pub cpu: f64,
}

/// Drives every service for `span` in each of so many rounds, after one that warms up, and prints what they came to.
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
        sorted(own.iter().zip(first).map(|(own, first)| ratio(own, first)))
    };
    let rates = beside(|own, first| own.rate / first.rate);
    let cpu = beside(|own, first| first.cpu_micros / own.cpu_micros);
    let figures = |figure: fn(&Round) -> f64| sorted(own.iter().map(figure));
    let micros = figures(|round| round.cpu_micros);
    println!(
        "{:30} {:9.0} {:6.2} {:>13} {:9.2} {:>13} {:9.2} {:6.2} {:7.1}",
        scenario.name,
        median(&figures(|round| round.rate)),
        median(&rates),
        format!("({:.2} {:.2})", rates[0], rates[rates.len() - 1]),
        median(&micros),
        format!("({:.2} {:.2})", micros[micros.len() / 4], micros[micros.len() * 3 / 4]),
        median(&figures(|round| round.server_micros)),
        median(&figures(|round| round.server_busy)),
        scenario.allocations(span),
    );
    Beside { rate: median(&rates), cpu: median(&cpu) }
}

fn sorted(figures: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures
}

fn median(sorted: &[f64]) -> f64 {
    sorted[sorted.len() / 2]
}
