//! The properties by name. S and L must hold in every reachable state; R must be reachable, or the others hold vacuously.

use stateright::Property;

use crate::bounds::Mode;
use crate::liveness;
use crate::protocol::Protocol;
use crate::slot::Phase;
use crate::state::{Rule, State};

/// The properties checked in `mode`.
pub(crate) fn of(mode: Mode) -> Vec<Property<Protocol>> {
    let mut properties = vec![
        Property::always("S1", |_, state: &State| state.ghost.answered.len() <= 1),
        Property::always("S2", |_, state: &State| {
            state.ghost.answered.without(state.ghost.effects_ever).is_empty()
                && state.ghost.holds(Rule::Truth)
        }),
        Property::always("S3", |_, state: &State| match state.slot.map(|slot| slot.phase) {
            Some(Phase::Pinned { value }) => state.ghost.effects_ever.contains(value),
            _ => true,
        }),
        Property::always("S5", |_, state: &State| state.ghost.holds(Rule::NoNonceTwice)),
        Property::always("S6", |_, state: &State| state.ghost.holds(Rule::Final)),
        Property::always("S7", |_, state: &State| state.ghost.holds(Rule::Fence)),
        Property::always("S8", |_, state: &State| state.ghost.holds(Rule::NoReleaseAfterEffect)),
        Property::always("S9", |_, state: &State| state.ghost.holds(Rule::Explained)),
        Property::always("L1", liveness::all_terminate),
        Property::sometimes("R1", |_, state: &State| !state.ghost.answered.is_empty()),
    ];
    match mode {
        Mode::AtLeastOnce => {
            properties.push(Property::always("L2", liveness::outcome_gets_pinned));
            properties.push(Property::sometimes("R2", |_, state: &State| state.ghost.effects.len() >= 2));
        }
        Mode::Transactional => properties.push(Property::always("L2", liveness::outcome_gets_pinned)),
        Mode::AtMostOnce => {}
    }
    if mode != Mode::AtLeastOnce {
        properties.push(Property::always("S4", |_, state: &State| {
            state.ghost.effects.without(state.ghost.declared).len() <= 1
        }));
    }
    properties
}
