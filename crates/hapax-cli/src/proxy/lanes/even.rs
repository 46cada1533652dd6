//! [`Even`]: how many connections leave a lane that has much more to do than another one, and where they go.
//!
//! A lane that shares its core with another program, or got the connections that ask most, is late for all of them
//! while others have time. So a lane looks at one other now and then; whoever has nothing to do looks at nobody.

use std::ops::Range;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How long loads are watched before they are compared: the system counts some of it a few milliseconds late.
const WATCHED: Duration = Duration::from_millis(40);
/// How often connections of a lane have a turn between two looks at the clock.
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
    /// Counts the spans of time that are watched.
    span: usize,
    /// How often connections had a turn in this one, and how many of them.
    turns: usize,
    active: usize,
    leaving: Leaving,
    watched: Option<Watched>,
}

/// Who has yet to leave.
#[derive(Default, Debug)]
struct Leaving {
    count: usize,
    /// For which lane.
    to: usize,
    /// How often one of them had a turn in the last span. One that had none would change nothing, and with one that had
    /// most of them, the other lane would have too much to do.
    turns: Range<usize>,
}

/// What is watched since when: both loads as they were then.
#[derive(Clone, Copy, Debug)]
struct Watched {
    since: Instant,
    own: Duration,
    other: (usize, Duration),
}

/// How often a connection had a turn.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Turns {
    /// None before the first.
    span: Option<usize>,
    now: usize,
    /// In the span before that one.
    before: usize,
}

impl Turns {
    /// One more. Whether it is the first of this span.
    fn take(&mut self, span: usize) -> bool {
        let is_first = self.span != Some(span);
        if is_first {
            let is_next = self.span.is_some_and(|last| last.wrapping_add(1) == span);
            *self = Self { span: Some(span), now: 0, before: if is_next { self.now } else { 0 } };
        }
        self.now += 1;
        is_first
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
        turns: &mut Turns,
        lanes: &Neighbours<impl Fn(usize) -> Option<Duration>>,
        can_leave: impl FnOnce() -> bool,
    ) -> Option<usize> {
        let mut state = self.0.lock();
        state.active += usize::from(turns.take(state.span));
        state.turns += 1;
        if state.turns.is_multiple_of(TURNS) {
            state.look(Instant::now(), lanes);
        }
        if state.leaving.count == 0 || !state.leaving.turns.contains(&turns.before) || !can_leave() {
            return None;
        }
        // What was found out before there was nothing to do for a while says nothing any more.
        if state.watched.is_some_and(|watched| watched.since.elapsed() > 2 * WATCHED) {
            state.leaving.count = 0;
            return None;
        }
        state.leaving.count -= 1;
        Some(state.leaving.to)
    }

    /// So many connections should leave for another lane, whatever they do.
    #[cfg(test)]
    pub(super) fn dismiss(&self, count: usize, to: usize) {
        self.0.lock().leaving = Leaving { count, to, turns: 0..usize::MAX };
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
            let surplus = surplus(parts);
            let turns_max = (surplus * self.turns as f64) as usize;
            let count = leaving(surplus, self.active);
            self.leaving = Leaving { count, to: other, turns: 1..turns_max.saturating_add(1) };
            next = other;
        }
        next = (next + 1) % lanes.count;
        if next == lanes.own {
            next = (next + 1) % lanes.count;
        }
        self.span = self.span.wrapping_add(1);
        (self.turns, self.active) = (0, 0);
        self.watched = Some(Watched { since: now, own, other: (next, load(next)) });
    }
}

/// Which part of what a lane has to do should be the other one's, so that both have as much.
fn surplus([own, other]: [f64; 2]) -> f64 {
    if own < MUCH || own - other < GAP { 0.0 } else { (own - other) / 2.0 / own }
}

/// How many of the active connections should leave: half of those that are too many, for the next look tells more.
fn leaving(surplus: f64, active: usize) -> usize {
    let too_many = surplus * active as f64;
    ((too_many / 2.0).ceil() as usize).min(LEAVING_MAX)
}

#[cfg(test)]
mod tests;
