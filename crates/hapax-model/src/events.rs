//! A model of the consumer of events: a broker, a store with a cache in front of it, two workers and a redriver, for one
//! event.
//!
//! Every change of the record is decided by [`hapax_core::transition`]. The consumer's own rules, what it does with each
//! answer, are written here once more (`events/consumer.rs`): the check proves the rules, not the library's consumer.
//!
//! # Actions
//!
//! The producer publishes the event, some times more than once. The broker delivers a message that was not acknowledged to
//! any worker at any time, again and at the same time to both: a lost connection, a passed deadline, a restart. An
//! acknowledgement removes its message, late ones too, or is lost. A worker may crash, pause, or start over between any two
//! steps, and the answer to any of its commands may be lost. A handler succeeds, fails, fails finally or panics. Leases
//! lapse; unfinished records are swept. A redriver reads the dead letter and publishes the event again, with the nonce of the
//! dead letter in its header. A process that has seen a finished record writes it to the cache at any later time.
//!
//! Out of scope: a retention of finished records that ends while the broker still delivers the event, deletions by an
//! operator, events with a used key and other content, and a cache that loses the tombstone of a deletion.
//!
//! # Properties
//!
//! | | in every reachable state |
//! |---|---|
//! | N1 | an event that was accepted is held by the broker, or its outcome is recorded |
//! | N2 | an acknowledgement is sent only if the outcome was recorded at some moment since the delivery |
//! | N3 | a dead letter is held by the broker or recorded, at every moment of a redrive |
//! | N4 | once nothing fails, the broker is empty, every worker is idle and the record is finished |
//!
//! R1 (completed at once), R2 (a dead letter), R3 (completed after a redrive) and R4 (answered from the cache) must be
//! reachable, so that the properties do not hold vacuously. [`Defect`] lists planted defects that the check must find.

use std::fmt;
use std::time::Duration;

use stateright::{HasDiscoveries, Path};

use crate::check::{Search, Violation, search};

mod consumer;
mod defect;
mod properties;
mod state;
mod world;

pub use defect::Defect;

use consumer::Consumer;
use state::State;
use world::{Action, World};

/// The bounds of the search. Deliveries, crashes, lost answers, clock ticks and evictions are unbounded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EventBounds {
    /// How often the producer may publish the event.
    pub publications: u8,
    /// How often the redriver may publish it. With the publications: 4 at most.
    pub redrives: u8,
    /// How often an unfinished or released record may be swept.
    pub sweeps: u8,
}

impl EventBounds {
    /// Takes seconds, for every change.
    pub const SMALL: Self = Self { publications: 1, redrives: 1, sweeps: 1 };
    /// Takes less than a minute, before a release.
    pub const LARGE: Self = Self { publications: 2, redrives: 1, sweeps: 1 };
}

/// The result of one search.
#[derive(Clone, Debug)]
pub struct EventReport {
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

/// Explores every interleaving within `bounds`, exhaustively or until a violation. With a defect, until a violation of one
/// of the properties that it breaks.
pub fn check_events(bounds: EventBounds, defect: Option<Defect>, threads: usize) -> EventReport {
    let world = World { bounds, consumer: Consumer { defect } };
    let finish_when = match defect {
        None => HasDiscoveries::AnyFailures,
        Some(defect) => HasDiscoveries::AnyOf(defect.breaks().iter().copied().collect()),
    };
    let Search { states, depth, time, held, violations } = search(world, threads, finish_when, describe);
    EventReport { states, depth, time, held, violations }
}

impl EventReport {
    /// Whether it found the defect.
    pub fn caught(&self, defect: Defect) -> bool {
        self.violations.iter().any(|violation| defect.breaks().contains(&violation.property))
    }
}

fn describe(path: Path<State, Action>) -> Vec<String> {
    let mut lines = Vec::new();
    let mut action: Option<Action> = None;
    for (state, next) in path.into_vec() {
        let label = action.map_or_else(|| "Begin".to_owned(), |action| format!("{action:?}"));
        lines.push(format!("{label}: {state:?}"));
        action = next;
    }
    lines
}

impl fmt::Display for EventReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = self.held.join(" ");
        write!(
            f,
            "{:>10} states, depth {}, {:.1} s: {held}",
            self.states,
            self.depth,
            self.time.as_secs_f64()
        )
    }
}
