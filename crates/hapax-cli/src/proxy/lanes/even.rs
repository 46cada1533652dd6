//! [`Even`]: how many connections leave a lane that has much more to do than another one, and where they go.
//!
//! A lane that shares its core with another program, or got the connections that ask most, is late for all of them
//! while others have time. So a lane looks at one other now and then; whoever has nothing to do looks at nobody.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How long loads are watched before they are compared: the system counts some of it a few milliseconds late.
const WATCHED: Duration = Duration::from_millis(40);
/// How often connections of a lane are looked after between two looks at the clock.
const TURNS: usize = 64;
/// A lane with less to do, as a part of the time, keeps what it has.
const MUCH: f64 = 0.5;
/// How much more a lane must have to do than the other, as a part of the time. They are never quite even.
const GAP: f64 = 0.15;
/// Connections that leave at a time: to move one takes as long as some requests, and what was measured may have been a
/// whim of the system.
const LEAVING_MAX: usize = 8;

/// What one lane knows of itself and another. Its own thread is the only one that asks.
#[derive(Debug, Default)]
pub(super) struct Even(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    turns: usize,
    /// Counts the spans of time that are watched.
    span: usize,
    /// Connections that had a turn in this one.
    active: usize,
    /// Connections that have yet to leave, and for which lane.
    leaving: usize,
    to: usize,
    watched: Option<Watched>,
}

/// What is watched since when: both loads as they were then.
#[derive(Clone, Copy, Debug)]
struct Watched {
    since: Instant,
    own: Duration,
    other: (usize, Duration),
}

/// The last span of time in which a connection was counted. A new connection was not counted yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted(usize);

impl Default for Counted {
    fn default() -> Self {
        Self(usize::MAX)
    }
}

/// The lanes, as far as it takes to compare them.
pub(super) struct Neighbours<L> {
    /// The lane that asks.
    pub(super) own: usize,
    pub(super) count: usize,
    /// The load of each so far.
    pub(super) load: L,
}

impl Even {
    /// A connection was looked after. The lane that it should go to, if it can leave now.
    pub(super) fn turn(
        &self,
        counted: &mut Counted,
        lanes: Neighbours<impl Fn(usize) -> Option<Duration>>,
        can_leave: impl FnOnce() -> bool,
    ) -> Option<usize> {
        let mut state = self.0.lock();
        if counted.0 != state.span {
            counted.0 = state.span;
            state.active += 1;
        }
        state.turns += 1;
        if state.turns == TURNS {
            state.turns = 0;
            state.look(Instant::now(), &lanes);
        }
        if state.leaving == 0 || !can_leave() {
            return None;
        }
        state.leaving -= 1;
        Some(state.to)
    }

    /// So many connections should leave for another lane.
    #[cfg(test)]
    pub(super) fn dismiss(&self, leaving: usize, to: usize) {
        let mut state = self.0.lock();
        (state.leaving, state.to) = (leaving, to);
    }
}

impl State {
    /// Compares what there was to do, if it was watched for long enough, and watches another lane next.
    fn look(&mut self, now: Instant, lanes: &Neighbours<impl Fn(usize) -> Option<Duration>>) {
        if lanes.count < 2 || self.watched.is_some_and(|watched| now - watched.since < WATCHED) {
            return;
        }
        let Some(own) = (lanes.load)(lanes.own) else { return };
        // Of a lane that has not had anything to do yet, nothing is known.
        let load = |lane| (lanes.load)(lane).unwrap_or_default();
        let mut next = lanes.own;
        if let Some(before) = self.watched {
            let (other, other_before) = before.other;
            let part = |more: Duration| more.as_secs_f64() / (now - before.since).as_secs_f64();
            let parts = [own.saturating_sub(before.own), load(other).saturating_sub(other_before)].map(part);
            (self.leaving, self.to) = (surplus(parts, self.active), other);
            next = other;
        }
        next = (next + 1) % lanes.count;
        if next == lanes.own {
            next = (next + 1) % lanes.count;
        }
        self.span = self.span.wrapping_add(1);
        self.active = 0;
        self.watched = Some(Watched { since: now, own, other: (next, load(next)) });
    }
}

/// How many of the `active` connections should go to the other lane: half of those with which both would have as much
/// to do, for the next look tells more. None where one alone would turn it round.
fn surplus([own, other]: [f64; 2], active: usize) -> usize {
    if own < MUCH || own - other < GAP {
        return 0;
    }
    let too_many = (own - other) / 2.0 / own * active as f64;
    if too_many < 1.0 {
        return 0;
    }
    ((too_many / 2.0).ceil() as usize).min(LEAVING_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_of_those_leave_that_are_too_many() {
        for (own, other, active, expected) in [
            (0.9, 0.3, 32, 6),
            (0.9, 0.5, 32, 4),
            (2.1, 0.7, 32, 6),
            (0.9, 0.3, 4, 1),
            (0.6, 0.0, 2, 1),
            (0.9, 0.0, 10_000, LEAVING_MAX),
        ] {
            assert_eq!(surplus([own, other], active), expected, "{own} {other} {active}");
        }
    }

    #[test]
    fn nobody_leaves_for_little() {
        for (own, other, active, why) in [
            (0.9, 0.8, 32, "they are nearly even"),
            (0.4, 0.0, 32, "there is time enough"),
            (0.9, 0.0, 1, "the other would have as much to do then"),
            (0.9, 0.5, 3, "one is too many by less than one"),
            (0.3, 0.9, 32, "it is the other that has much to do"),
            (0.9, 0.0, 0, "there is nobody"),
        ] {
            assert_eq!(surplus([own, other], active), 0, "{why}");
        }
    }

    const NOBODY: [usize; 0] = [];

    /// Lanes of which only the first is asked, and how much each has to do of every second.
    struct Rig {
        even: Even,
        parts: Vec<f64>,
        begun: Instant,
        passed: Duration,
    }

    impl Rig {
        fn new(parts: &[f64]) -> Self {
            let mut rig = Self {
                even: Even::default(),
                parts: parts.into(),
                begun: Instant::now(),
                passed: Duration::ZERO,
            };
            rig.look_after(Duration::ZERO);
            rig
        }

        fn look_after(&mut self, span: Duration) {
            self.passed += span;
            let load = |lane: usize| Some(self.passed.mul_f64(self.parts[lane]));
            let lanes = Neighbours { own: 0, count: self.parts.len(), load };
            self.even.0.lock().look(self.begun + self.passed, &lanes);
        }

        /// Each of so many connections has a turn.
        fn turns(&self, counted: &mut [Counted]) -> Vec<usize> {
            let load = |_: usize| -> Option<Duration> { None };
            let turns = counted.iter_mut().map(|counted| {
                let lanes = Neighbours { own: 0, count: self.parts.len(), load };
                self.even.turn(counted, lanes, || true)
            });
            turns.flatten().collect()
        }
    }

    #[test]
    fn as_many_leave_as_should() {
        let mut rig = Rig::new(&[0.9, 0.1]);
        let mut counted = [Counted::default(); 16];
        assert_eq!(rig.turns(&mut counted), NOBODY);
        rig.turns(&mut counted);
        rig.look_after(WATCHED);
        assert_eq!(rig.turns(&mut counted), [1, 1, 1, 1], "of sixteen, however often they had a turn");
    }

    #[test]
    fn those_who_had_no_turn_do_not_count() {
        let mut rig = Rig::new(&[0.9, 0.1]);
        let mut counted = [Counted::default(); 16];
        rig.turns(&mut counted);
        rig.look_after(WATCHED);
        rig.turns(&mut counted[..4]);
        rig.look_after(WATCHED);
        assert_eq!(rig.turns(&mut counted), [1], "of four");
    }

    #[test]
    fn loads_are_compared_when_they_were_watched_for_long_enough() {
        let mut rig = Rig::new(&[0.9, 0.1]);
        let mut counted = [Counted::default(); 16];
        rig.turns(&mut counted);
        rig.look_after(WATCHED / 2);
        assert_eq!(rig.turns(&mut counted), NOBODY);
        rig.look_after(WATCHED / 2);
        assert_ne!(rig.turns(&mut counted), NOBODY);
    }

    #[test]
    fn every_other_lane_is_looked_at_in_turn() {
        let mut rig = Rig::new(&[0.9, 0.9, 0.1, 0.9, 0.1]);
        let mut counted = [Counted::default(); 4];
        let mut left = Vec::new();
        for _ in 0..8 {
            rig.turns(&mut counted);
            rig.look_after(WATCHED);
            left.push(rig.turns(&mut counted[..1]));
        }
        assert_eq!(left, [vec![], vec![2], vec![], vec![4], vec![], vec![2], vec![], vec![4]]);
    }

    #[test]
    fn whoever_cannot_leave_now_does_later() {
        let even = Even::default();
        even.dismiss(1, 1);
        let mut counted = Counted::default();
        let mut turn = |can_leave| {
            let lanes = Neighbours { own: 0, count: 2, load: |_| None };
            even.turn(&mut counted, lanes, || can_leave)
        };
        assert_eq!([turn(false), turn(true), turn(true)], [None, Some(1), None]);
    }

    #[test]
    fn a_lane_alone_looks_at_nobody() {
        let mut rig = Rig::new(&[0.9]);
        let mut counted = [Counted::default(); 16];
        rig.turns(&mut counted);
        rig.look_after(WATCHED);
        assert_eq!(rig.turns(&mut counted), NOBODY);
    }
}
