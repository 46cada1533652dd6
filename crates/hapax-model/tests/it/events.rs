//! The consumer of events, with and without planted defects.

use hapax_model::events::{Defect, EventBounds, check_events};

#[test]
fn every_accepted_event_is_held_or_recorded() {
    let report = check_events(EventBounds::SMALL, None, 2);
    assert!(report.violations.is_empty(), "{:#?}", report.violations);
    assert_eq!(report.held, ["N1", "N2", "N3", "N4", "R1", "R2", "R3", "R4"]);
    assert!(report.states >= 100_000, "only {} states", report.states);
}

#[test]
fn every_defect_is_found() {
    for defect in Defect::ALL {
        let report = check_events(EventBounds::SMALL, Some(defect), 2);
        assert!(report.caught(defect), "{defect:?}: {:?}", report.violations);
    }
}
