use super::*;

#[test]
fn both_should_have_as_much_to_do() {
    for (own, other, expected) in [(0.8, 0.4, 0.25), (1.0, 0.0, 0.5), (2.0, 0.5, 0.375)] {
        assert_eq!(surplus([own, other]), expected, "{own} {other}");
    }
    for (own, other, why) in [
        (0.9, 0.8, "they are nearly even"),
        (0.4, 0.0, "there is time enough"),
        (0.3, 0.9, "it is the other that has much to do"),
    ] {
        assert_eq!(surplus([own, other]), 0.0, "{why}");
    }
}

#[test]
fn half_of_those_leave_that_are_too_many() {
    let cases =
        [(0.25, 32, 4), (0.25, 30, 4), (0.5, 1, 1), (0.25, 0, 0), (0.0, 32, 0), (0.5, 10_000, LEAVING_MAX)];
    for (surplus, active, expected) in cases {
        assert_eq!(leaving(surplus, active), expected, "{surplus} {active}");
    }
}

/// Lanes of which only the first is asked, and how much each has to do of every second.
struct Rig {
    even: Even,
    parts: Vec<f64>,
    now: Instant,
    passed: Duration,
}

impl Rig {
    /// Watches since just now.
    fn new(parts: &[f64]) -> Self {
        let mut rig =
            Self { even: Even::default(), parts: parts.into(), now: Instant::now(), passed: Duration::ZERO };
        rig.look_after(Duration::ZERO);
        rig
    }

    fn look_after(&mut self, span: Duration) {
        self.passed += span;
        let load = |lane: usize| Some(self.passed.mul_f64(self.parts[lane]));
        let lanes = Neighbours { own: 0, count: self.parts.len(), load };
        self.even.0.lock().look(self.now + self.passed, &lanes);
    }

    /// Each of these connections has a turn; where those go that leave.
    fn turns<'a>(&self, all: impl IntoIterator<Item = &'a mut Turns>) -> Vec<usize> {
        let lanes = Neighbours { own: 0, count: self.parts.len(), load: |_| None };
        all.into_iter().filter_map(|turns| self.even.turn(turns, &lanes, || true)).collect()
    }
}

const NOBODY: [usize; 0] = [];

#[test]
fn as_many_leave_as_should() {
    let mut rig = Rig::new(&[0.9, 0.1]);
    let mut all = [Turns::default(); 16];
    assert_eq!(rig.turns(&mut all), NOBODY);
    rig.turns(&mut all);
    rig.look_after(WATCHED);
    assert_eq!(rig.turns(&mut all), [1, 1, 1, 1], "of sixteen, however often they had a turn");
}

#[test]
fn those_who_had_no_turn_do_not_count_and_stay() {
    let mut rig = Rig::new(&[0.9, 0.1]);
    let mut all = [Turns::default(); 16];
    rig.turns(&mut all);
    rig.look_after(WATCHED);
    rig.turns(&mut all[8..12]);
    rig.look_after(WATCHED);
    assert_eq!(rig.turns(&mut all[..8]), NOBODY);
    assert_eq!(rig.turns(&mut all[8..12]), [1], "of four");
}

#[test]
fn whoever_asks_for_most_of_it_stays() {
    let mut rig = Rig::new(&[0.9, 0.1]);
    let mut busy = Turns::default();
    let mut others = [Turns::default(); 7];
    for _ in 0..20 {
        rig.turns([&mut busy]);
    }
    rig.turns(&mut others);
    rig.look_after(WATCHED);
    assert_eq!(rig.turns([&mut busy]), NOBODY, "the other lane would have as much to do as this one has");
    assert_eq!(rig.turns(&mut others), [1, 1]);
}

#[test]
fn whoever_is_alone_stays() {
    let mut rig = Rig::new(&[0.9, 0.0]);
    let mut alone = Turns::default();
    for _ in 0..20 {
        rig.turns([&mut alone]);
    }
    rig.look_after(WATCHED);
    assert_eq!(rig.turns([&mut alone]), NOBODY);
}

#[test]
fn whoever_came_a_moment_ago_stays() {
    let mut rig = Rig::new(&[0.9, 0.1]);
    let mut all = [Turns::default(); 16];
    rig.turns(&mut all);
    rig.look_after(WATCHED);
    assert_eq!(rig.turns([&mut Turns::default()]), NOBODY);
    assert_ne!(rig.turns(&mut all), NOBODY);
}

#[test]
fn loads_are_compared_when_they_were_watched_for_long_enough() {
    let mut rig = Rig::new(&[0.9, 0.1]);
    let mut all = [Turns::default(); 16];
    rig.turns(&mut all);
    rig.look_after(WATCHED / 2);
    assert_eq!(rig.turns(&mut all), NOBODY);
    rig.look_after(WATCHED / 2);
    assert_ne!(rig.turns(&mut all), NOBODY);
}

#[test]
fn nobody_leaves_for_what_was_found_out_long_ago() {
    let mut rig = Rig::new(&[0.9, 0.1]);
    let mut all = [Turns::default(); 16];
    rig.turns(&mut all);
    rig.look_after(WATCHED);
    let mut state = rig.even.0.lock();
    assert_ne!(state.leaving.count, 0);
    let watched = state.watched.as_mut().unwrap();
    watched.since = watched.since.checked_sub(WATCHED * 4).unwrap();
    drop(state);
    assert_eq!(rig.turns(&mut all), NOBODY);
}

#[test]
fn every_other_lane_is_looked_at_in_turn() {
    let mut rig = Rig::new(&[0.9, 0.9, 0.1, 0.9, 0.1]);
    let mut all = [Turns::default(); 4];
    let mut left = Vec::new();
    for _ in 0..8 {
        rig.turns(&mut all);
        rig.look_after(WATCHED);
        left.push(rig.turns(&mut all));
    }
    assert_eq!(left, [vec![], vec![2], vec![], vec![4], vec![], vec![2], vec![], vec![4]]);
}

#[test]
fn whoever_cannot_leave_now_does_later() {
    let even = Even::default();
    let lanes = Neighbours { own: 0, count: 2, load: |_| None };
    let mut turns = Turns::default();
    even.turn(&mut turns, &lanes, || true);
    even.dismiss(1, 1);
    let left = [false, true, true].map(|can_leave| even.turn(&mut turns, &lanes, || can_leave));
    assert_eq!(left, [None, Some(1), None]);
}

#[test]
fn a_lane_alone_looks_at_nobody() {
    let mut rig = Rig::new(&[0.9]);
    let mut all = [Turns::default(); 16];
    rig.turns(&mut all);
    rig.look_after(WATCHED);
    assert_eq!(rig.turns(&mut all), NOBODY);
}
