//! Runs the checker and says what it found.

use std::fmt;
use std::time::{Duration, Instant};

use stateright::{Checker, Expectation, HasDiscoveries, Model, Path};

use crate::bounds::{Bounds, Mode};
use crate::protocol::{Action, Protocol};
use crate::state::State;
use crate::steps::Steps;

/// What one search found.
#[derive(Clone, Debug)]
pub struct Report {
    /// The promise that was explored.
    pub mode: Mode,
    /// How far.
    pub bounds: Bounds,
    /// Different states that were reached.
    pub states: usize,
    /// The longest shortest way to a state, or about that with several threads.
    pub depth: usize,
    /// How long it took.
    pub time: Duration,
    /// Properties that hold, or were reached.
    pub held: Vec<&'static str>,
    /// Properties that do not hold, or were not reached.
    pub violations: Vec<Violation>,
}

/// A property that does not hold.
#[derive(Clone, Debug)]
pub struct Violation {
    /// Which one.
    pub property: &'static str,
    /// How it comes to pass, step by step; empty when something that must be reachable is not.
    pub path: Vec<String>,
}

/// When a search ends before everything is explored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Until {
    /// At the first violation of any property.
    AnyViolation,
    /// At the first violation of one of these. L1 and L2 look ahead, so they often see a defect before the
    /// property that names it.
    Violated(Vec<String>),
}

/// Explores `mode` within `bounds` with `threads` threads, to the end or `until` a violation.
pub fn check(mode: Mode, bounds: Bounds, threads: usize, until: &Until) -> Report {
    let began = Instant::now();
    let protocol = Protocol(Steps { mode, bounds });
    let finish_when = match until {
        Until::AnyViolation => HasDiscoveries::AnyFailures,
        Until::Violated(names) => {
            let named = |name: &&'static str| names.iter().any(|wanted| wanted == name);
            let properties = protocol.properties();
            HasDiscoveries::AnyOf(properties.iter().map(|property| property.name).filter(named).collect())
        }
    };
    let checker = protocol.checker().threads(threads).finish_when(finish_when).spawn_bfs().join();
    let mut discoveries = checker.discoveries();
    let mut held = Vec::new();
    let mut violations = Vec::new();
    for property in protocol.properties() {
        let found = discoveries.remove(property.name);
        let must_be_found = property.expectation == Expectation::Sometimes;
        if found.is_some() == must_be_found {
            held.push(property.name);
        } else {
            violations
                .push(Violation { property: property.name, path: found.map_or_else(Vec::new, describe) });
        }
    }
    let broken = violations.iter().any(|violation| !violation.path.is_empty());
    if broken {
        // The search ended early, so what it had not reached yet says nothing.
        violations.retain(|violation| !violation.path.is_empty());
    }
    held.sort_unstable();
    Report {
        mode,
        bounds,
        states: checker.unique_state_count(),
        depth: checker.max_depth(),
        time: began.elapsed(),
        held,
        violations,
    }
}

fn describe(path: Path<State, Action>) -> Vec<String> {
    let mut lines = Vec::new();
    let mut action: Option<Action> = None;
    for (state, next) in path.into_vec() {
        let did = action.map_or_else(|| "Begin".to_owned(), |action| format!("{action:?}"));
        lines.push(format!(
            "{did}: record {:?}, executors {:?}, {:?}",
            state.slot, state.executors, state.ghost
        ));
        action = next;
    }
    lines
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Bounds { executors, nonces, operator_acts_max, forgets_max, .. } = self.bounds;
        write!(
            f,
            "{:<4} {executors:>9} {nonces:>8} {operator_acts_max:>13} {forgets_max:>7} {:>10} {:>5} {:>8.1}  {}",
            self.mode.name(),
            self.states,
            self.depth,
            self.time.as_secs_f64(),
            self.held.join(" "),
        )
    }
}

impl Report {
    /// The head of a table whose lines are reports.
    pub const HEAD: &'static str =
        "mode executors attempts operator acts forgets     states depth  seconds  holds or reached";
}
