//! Two executors in every mode.

use hapax_model::{Bounds, Mode, Until, check};

/// Explores `mode` and expects every property to hold, over at least `states_min` states.
fn explore(mode: Mode, reached: &[&str], states_min: usize) {
    let report = check(mode, Bounds::two(mode), 2, &Until::AnyViolation);
    assert!(report.violations.is_empty(), "{mode:?}: {:#?}", report.violations);
    for property in reached {
        assert!(report.held.contains(property), "{mode:?}: {property} was not reached");
    }
    assert!(report.states >= states_min, "{mode:?}: only {} states", report.states);
}

#[test]
fn at_most_once_holds() {
    explore(Mode::AtMostOnce, &["R1", "S4"], 100_000);
}

#[test]
fn at_least_once_holds() {
    explore(Mode::AtLeastOnce, &["R1", "R2", "L2"], 200_000);
}

#[test]
fn transactional_holds() {
    explore(Mode::Transactional, &["R1", "S4", "L2"], 100_000);
}
