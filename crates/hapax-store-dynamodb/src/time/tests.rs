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
fn a_wrong_clock_follows_the_service() {
    for off in [SECOND * 3600, SECOND * 5] {
        for service in [START.after(off), Timestamp::from_millis(START.as_millis() - off.as_millis() as u64)]
        {
            let clock = ManualClock::at(START);
            let time = following(&clock);
            assert!(time.observe_date(&date(service), START));
            assert_eq!(
                (time.now(), time.signing_time()),
                (START, service),
                "one response changes signatures only"
            );
            assert!(time.observe_date(&date(service), START));
            assert_eq!((time.now(), time.signing_time()), (service, service));
            assert!(!time.observe_date(&date(service), START), "it has been applied");
            assert_eq!(time.steady(), START, "spans are measured on the monotonic clock");
            clock.advance(SECOND);
            assert_eq!(time.now(), service.after(SECOND));
        }
    }
}

#[test]
fn a_date_that_the_next_response_contradicts_changes_nothing() {
    let (day, hour) = (date(START.after(SECOND * 86_400)), date(START.after(SECOND * 3600)));
    let right = date(START);
    for dates in [&[&day, &right, &day][..], &[&day, &hour, &day], &[&hour, &right, &hour, &day]] {
        let time = following(&ManualClock::at(START));
        for date in dates {
            time.observe_date(date, START);
            assert_eq!(time.now(), START, "{dates:?}");
        }
        time.observe_date(&right, START);
        assert_eq!(time.signing_time(), START, "{dates:?}");
    }
}

/// A clock that holds its first reader until a second one has read it.
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
fn concurrent_responses_count_the_offset_once() {
    let clock = Arc::new(Together { is_held: AtomicBool::new(true), both: Barrier::new(2) });
    let time = StoreTime { follows_service: true, ..StoreTime::of(clock.clone()) };
    let service = START.after(SECOND * 3600);
    std::thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| time.observe_date(&date(service), START));
        }
    });
    clock.is_held.store(false, Ordering::SeqCst);
    assert_eq!(time.now(), service);
}

#[test]
fn a_delayed_response_changes_nothing() {
    let clock = ManualClock::at(START);
    let time = following(&clock);
    let sent_at = time.steady();
    clock.advance(SECOND * 90);
    for answered_after in [0, 1, 45, 90] {
        assert!(
            !time.observe_date(&date(START.after(SECOND * answered_after)), sent_at),
            "{answered_after} s"
        );
    }
    assert_eq!(time.now(), START.after(SECOND * 90));
}

#[test]
fn an_invalid_date_changes_nothing() {
    let time = following(&ManualClock::at(START));
    for date in ["", "yesterday", "Thu, 01 Jan 1960 00:00:00 GMT"] {
        assert!(!time.observe_date(date, START), "{date}");
    }
    let fixed = StoreTime::of(Arc::new(ManualClock::at(START)));
    assert!(!fixed.observe_date(&date(START.after(SECOND * 3600)), START), "a test's clock is right");
}
