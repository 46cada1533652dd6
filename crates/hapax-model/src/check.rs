//! Runs the model checker and reports the result.

use std::fmt::{self, Debug};
use std::hash::Hash;
use std::time::{Duration, Instant};

use stateright::{Checker, Expectation, HasDiscoveries, Model, Path};

use crate::bounds::{Bounds, Mode};
use crate::protocol::{Action, Protocol};
use crate::state::State;
use crate::steps::Steps;

/// The result of one search.
#[derive(Clone, Debug)]
pub struct Report {
    /// The explored mode.
    pub mode: Mode,
    /// The bounds of the search.
    pub bounds: Bounds,
    /// The number of distinct states.
    pub states: usize,
    /// The greatest distance of a state from the initial one; approximate with several threads.
    pub depth: usize,
    /// The duration of the search.
    pub time: Duration,
    /// Properties that hold, or were reached.
    pub held: Vec<&'static str>,
    /// Properties that do not hold, or were not reached.
    pub violations: Vec<Violation>,
}

/// A violated property.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The property's name.
    pub property: &'static str,
    /// The counterexample, step by step; empty for a state that must be reachable and is not.
    pub path: Vec<String>,
}

/// When a search stops early.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Until {
    /// At the first violation of any property.
    AnyViolation,
    /// At the first violation of one of these. L1 and L2 simulate ahead, so they often detect a defect before the
    /// property that names it.
    Violated(Vec<String>),
}

/// Explores `mode` within `bounds` with `threads` threads, exhaustively or `until` a violation.
pub fn check(mode: Mode, bounds: Bounds, threads: usize, until: &Until) -> Report {
    let protocol = Protocol(Steps { mode, bounds });
    let finish_when = match until {
        Until::AnyViolation => HasDiscoveries::AnyFailures,
        Until::Violated(names) => {
            let named = |name: &&'static str| names.iter().any(|wanted| wanted == name);
            let properties = protocol.properties();
            HasDiscoveries::AnyOf(properties.iter().map(|property| property.name).filter(named).collect())
        }
    };
    let search = search(protocol, threads, finish_when, describe);
    let Search { states, depth, time, held, violations } = search;
    Report { mode, bounds, states, depth, time, held, violations }
}

/// The result of exploring any model.
#[derive(Debug)]
pub(crate) struct Search {
    pub(crate) states: usize,
    pub(crate) depth: usize,
    pub(crate) time: Duration,
    pub(crate) held: Vec<&'static str>,
    pub(crate) violations: Vec<Violation>,
}

/// The lines of a counterexample.
type Describe<M> = fn(Path<<M as Model>::State, <M as Model>::Action>) -> Vec<String>;

/// Explores a model breadth first, exhaustively or until `finish_when`.
pub(crate) fn search<M>(
    model: M,
    threads: usize,
    finish_when: HasDiscoveries,
    describe: Describe<M>,
) -> Search
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + Debug + PartialEq + Send + 'static,
{
    let began = Instant::now();
    let properties: Vec<_> = model.properties().iter().map(|p| (p.name, p.expectation.clone())).collect();
    let checker = model.checker().threads(threads).finish_when(finish_when).spawn_bfs().join();
    let mut discoveries = checker.discoveries();
    let mut held = Vec::new();
    let mut violations = Vec::new();
    for (name, expectation) in properties {
        let found = discoveries.remove(name);
        let must_be_found = expectation == Expectation::Sometimes;
        if found.is_some() == must_be_found {
            held.push(name);
        } else {
            violations.push(Violation { property: name, path: found.map_or_else(Vec::new, describe) });
        }
    }
    let broken = violations.iter().any(|violation| !violation.path.is_empty());
    if broken {
        // The search stopped early, so unreached states prove nothing.
        violations.retain(|violation| !violation.path.is_empty());
    }
    held.sort_unstable();
    Search {
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
        let label = action.map_or_else(|| "Begin".to_owned(), |action| format!("{action:?}"));
        lines.push(format!(
            "{label}: record {:?}, executors {:?}, {:?}",
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
    /// The header of the table of reports.
    pub const HEAD: &'static str =
        "mode executors attempts operator acts forgets     states depth  seconds  holds or reached";
}
