use std::time::{Duration, UNIX_EPOCH};

use hapax_core::{ManualClock, Timestamp};

use super::StoreTime;

const START: Timestamp = Timestamp::from_millis(1_794_774_600_000);
const SECOND: Duration = Duration::from_secs(1);

fn following(clock: &ManualClock) -> StoreTime {
    StoreTime { follows_service: true, ..StoreTime::of(std::sync::Arc::new(clock.clone())) }
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
            assert!(time.hear(&date(service), time.now()));
            assert_eq!(time.now(), service);
            assert_eq!(time.steady(), START, "spans are measured on a clock that nobody sets");
            clock.advance(SECOND);
            assert_eq!(time.now(), service.after(SECOND));
        }
    }
}

#[test]
fn an_answer_that_was_long_on_its_way_changes_nothing() {
    let clock = ManualClock::at(START);
    let time = following(&clock);
    let sent_at = time.now();
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
    let fixed = StoreTime::of(std::sync::Arc::new(ManualClock::at(START)));
    assert!(!fixed.hear(&date(START.after(SECOND * 3600)), START), "a test's clock is right");
}
