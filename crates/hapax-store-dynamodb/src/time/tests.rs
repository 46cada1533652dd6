use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, UNIX_EPOCH};

use hapax_core::{Clock, ManualClock, Timestamp};

use super::StoreTime;

const START: Timestamp = Timestamp::from_millis(1_794_774_600_000);
const SECOND: Duration = Duration::from_secs(1);

fn following(clock: &ManualClock) -> StoreTime {
    StoreTime { follows_service: true, ..StoreTime::of(Arc::new(clock.clone())) }
}

fn date(at: Timestamp) -> String {
    httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_millis(at.as_millis()))
}

#[test]
fn a_clock_that_is_wrong_follows_the_service() {
    for off in [SECOND * 3600, SECOND * 5] {
        for service in [START.after(off), Timestamp::from_millis(START.as_millis() - off.as_millis() as u64)]
        {
            let clock = ManualClock::at(START);
            let time = following(&clock);
            assert!(time.hear(&date(service), START));
            assert_eq!(
                (time.now(), time.to_sign_with()),
                (START, service),
                "one answer is for signatures only"
            );
            assert!(time.hear(&date(service), START));
            assert_eq!((time.now(), time.to_sign_with()), (service, service));
            assert!(!time.hear(&date(service), START), "it is known now");
            assert_eq!(time.steady(), START, "spans are measured on a clock that nobody sets");
            clock.advance(SECOND);
            assert_eq!(time.now(), service.after(SECOND));
        }
    }
}

#[test]
fn a_date_that_the_next_answer_does_not_bear_out_changes_nothing() {
    let (day, hour) = (date(START.after(SECOND * 86_400)), date(START.after(SECOND * 3600)));
    let right = date(START);
    for dates in [&[&day, &right, &day][..], &[&day, &hour, &day], &[&hour, &right, &hour, &day]] {
        let time = following(&ManualClock::at(START));
        for date in dates {
            time.hear(date, START);
            assert_eq!(time.now(), START, "{dates:?}");
        }
        time.hear(&right, START);
        assert_eq!(time.to_sign_with(), START, "{dates:?}");
    }
}

/// A clock that two have read before either goes on, while it is held.
#[derive(Debug)]
struct Together {
    is_held: AtomicBool,
    both: Barrier,
}

impl Clock for Together {
    fn now(&self) -> Timestamp {
        if self.is_held.load(Ordering::SeqCst) {
            self.both.wait();
        }
        START
    }
}

#[test]
fn answers_that_are_heard_at_the_same_time_count_the_difference_once() {
    let clock = Arc::new(Together { is_held: AtomicBool::new(true), both: Barrier::new(2) });
    let time = StoreTime { follows_service: true, ..StoreTime::of(clock.clone()) };
    let service = START.after(SECOND * 3600);
    std::thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| time.hear(&date(service), START));
        }
    });
    clock.is_held.store(false, Ordering::SeqCst);
    assert_eq!(time.now(), service);
}

#[test]
fn an_answer_that_was_long_on_its_way_changes_nothing() {
    let clock = ManualClock::at(START);
    let time = following(&clock);
    let sent_at = time.steady();
    clock.advance(SECOND * 90);
    for answered_after in [0, 1, 45, 90] {
        assert!(!time.hear(&date(START.after(SECOND * answered_after)), sent_at), "{answered_after} s");
    }
    assert_eq!(time.now(), START.after(SECOND * 90));
}

#[test]
fn what_is_no_date_changes_nothing() {
    let time = following(&ManualClock::at(START));
    for date in ["", "yesterday", "Thu, 01 Jan 1960 00:00:00 GMT"] {
        assert!(!time.hear(date, START), "{date}");
    }
    let fixed = StoreTime::of(Arc::new(ManualClock::at(START)));
    assert!(!fixed.hear(&date(START.after(SECOND * 3600)), START), "a test's clock is right");
}
