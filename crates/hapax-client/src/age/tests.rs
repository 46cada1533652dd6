use std::time::UNIX_EPOCH;

use super::*;

const HOUR: Duration = Duration::from_secs(3600);

/// The moment at which this process begins, by a clock that shows this many hours.
fn start(hours: u32) -> Moment {
    Moment { wall: UNIX_EPOCH + hours * HOUR, steady: Instant::now() }
}

fn later(moment: Moment, wall_hours: u32, steady_hours: u32) -> Moment {
    Moment { wall: UNIX_EPOCH + wall_hours * HOUR, steady: moment.steady + steady_hours * HOUR }
}

#[test]
fn c_04_a_clock_that_is_set_back_makes_no_key_younger() {
    let made = start(1000);
    let age = KeyAge::new(made.wall, made);
    assert_eq!(age.at(later(made, 1003, 3)), 3 * HOUR);
    assert_eq!(age.at(later(made, 900, 3)), 3 * HOUR, "set back while this process runs");
    assert_eq!(age.at(later(made, 1005, 3)), 5 * HOUR, "the machine slept");
}

#[test]
fn c_04_what_was_before_this_process_is_added() {
    let now = start(1000);
    let age = KeyAge::new(UNIX_EPOCH + 990 * HOUR, now);
    assert_eq!(age.at(now), 10 * HOUR);
    assert_eq!(age.at(later(now, 900, 2)), 12 * HOUR);
}

#[test]
fn c_04_a_key_from_the_future_has_no_known_age() {
    let now = start(1000);
    let ahead = KeyAge::new(now.wall + HOUR, now);
    assert_eq!(ahead.at(later(now, 1002, 2)), Duration::MAX);
    let tolerated = KeyAge::new(now.wall + Duration::from_secs(1), now);
    assert_eq!(tolerated.at(now), Duration::ZERO);
    assert_eq!(tolerated.older(ahead, now).at(now), Duration::MAX);
    assert_eq!(ahead.older(tolerated, now).at(now), Duration::MAX);
}
