//! Clocks are monotonic.

use std::time::Duration;

use hapax_core::{Clock, ManualClock, SystemClock, Timestamp};

#[test]
fn d_02_the_system_clock_never_goes_back() {
    let clock = SystemClock::new();
    let readings: Vec<_> = (0..1000).map(|_| clock.now()).collect();
    assert!(readings.is_sorted());
    assert!(readings[0] > Timestamp::from_millis(1_700_000_000_000), "it starts at the wall clock");
}

#[test]
fn d_02_a_clock_starts_no_earlier_than_its_floor() {
    let in_a_century = SystemClock::new().now().after(Duration::from_secs(100 * 365 * 86_400));
    assert!(SystemClock::starting_after(in_a_century).now() >= in_a_century);
    let long_ago = Timestamp::from_millis(1);
    assert!(SystemClock::starting_after(long_ago).now() > Timestamp::from_millis(1_700_000_000_000));
}

#[test]
fn clones_of_a_manual_clock_share_one_time() {
    let clock = ManualClock::at(Timestamp::from_millis(5));
    let shared = clock.clone();
    assert_eq!(shared.now(), Timestamp::from_millis(5));
    clock.advance(Duration::from_millis(7));
    assert_eq!(shared.now(), Timestamp::from_millis(12));
}

#[test]
fn timestamp_arithmetic_saturates() {
    let end = Timestamp::from_millis(u64::MAX);
    assert_eq!(end.after(Duration::from_millis(1)), end);
    assert_eq!(Timestamp::from_millis(1).after(Duration::MAX), end);
    assert_eq!(Timestamp::from_millis(1).since(end), Duration::ZERO);
    assert_eq!(Timestamp::from_millis(9).since(Timestamp::from_millis(2)), Duration::from_millis(7));
}
