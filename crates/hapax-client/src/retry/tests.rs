use std::time::UNIX_EPOCH;

use http::HeaderValue;

use super::*;

/// The time of the tests: a date that `Retry-After` may name.
const NOW: u64 = 1_700_000_000;

/// The verdict on a response with this status, these fields and a problem of this code, where it is not empty.
fn verdict(status: u16, fields: &[(&'static str, &str)], code: &str) -> Verdict {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.insert(*name, HeaderValue::from_str(value).unwrap());
    }
    let problem = Problem { kind: format!("https://hapax.dev/errors/{code}"), ..Problem::default() };
    let problem = (!code.is_empty()).then_some(&problem);
    let now = UNIX_EPOCH + Duration::from_secs(NOW);
    of_response(StatusCode::from_u16(status).unwrap(), &headers, problem, now)
}

const RETRY: Verdict = Verdict::Retry { after: None };
const IN_PROGRESS: Verdict = Verdict::InProgress { after: None };

#[test]
fn c_02_statuses_without_a_type() {
    for status in [408, 425, 429, 500, 502, 503, 504] {
        assert_eq!(verdict(status, &[], ""), RETRY, "{status}");
    }
    for status in [200, 201, 204, 301, 303, 307, 400, 401, 403, 404, 409, 410, 412, 422, 423, 501, 505] {
        assert_eq!(verdict(status, &[], ""), Verdict::Final, "{status}");
    }
}

#[test]
fn c_02_the_type_decides_before_the_status() {
    let cases = [
        (409, "in-progress", IN_PROGRESS),
        (504, "in-progress", IN_PROGRESS),
        (409, "uncertain", Verdict::Uncertain),
        (500, "uncertain", Verdict::Uncertain),
        (502, "uncertain", Verdict::Uncertain),
        (409, "result-unavailable", Verdict::Refused),
        (422, "key-reused", Verdict::Mismatch),
        (409, "key-reused", Verdict::Mismatch),
        (400, "key-missing", Verdict::Refused),
        (400, "key-expired", Verdict::Refused),
        (503, "key-expired", Verdict::Refused),
        (503, "store-unavailable", RETRY),
        (502, "upstream-unavailable", RETRY),
        (418, "rate-limited", RETRY),
    ];
    for (status, code, expected) in cases {
        assert_eq!(verdict(status, &[], code), expected, "{status} {code}");
    }
}

#[test]
fn c_02_some_statuses_are_never_retried() {
    for status in [400, 401, 403, 422] {
        for fields in [&[("x-should-retry", "true")][..], &[("retry-after", "1")]] {
            assert_eq!(verdict(status, fields, ""), Verdict::Final, "{status}");
            assert_eq!(verdict(status, fields, "rate-limited"), Verdict::Refused, "{status}");
            assert_eq!(verdict(status, fields, "in-progress"), Verdict::Refused, "{status}");
        }
    }
    assert_eq!(verdict(400, &[], "body-incomplete"), Verdict::Refused);
}

#[test]
fn c_02_a_hint_makes_no_unknown_outcome_repeatable() {
    let hint = [("x-should-retry", "true")];
    assert_eq!(verdict(409, &hint, "uncertain"), Verdict::Uncertain);
    assert_eq!(verdict(409, &hint, "result-unavailable"), Verdict::Refused);
}

#[test]
fn c_02_a_replay_is_final() {
    for mark in ["x-idempotent-replayed", "idempotent-replayed"] {
        assert_eq!(verdict(503, &[(mark, "true")], ""), Verdict::Final);
        assert_eq!(verdict(429, &[(mark, "true"), ("x-should-retry", "true")], ""), Verdict::Final);
        assert_eq!(verdict(503, &[(mark, "false")], ""), RETRY);
    }
}

#[test]
fn c_02_a_conflict_is_in_progress_when_it_says_when_to_retry() {
    let after = Some(Duration::from_secs(1));
    assert_eq!(verdict(409, &[("retry-after", "1")], ""), Verdict::InProgress { after });
    assert_eq!(verdict(409, &[("stripe-should-retry", "true")], ""), IN_PROGRESS);
    assert_eq!(verdict(409, &[("retry-after", "1"), ("x-should-retry", "false")], ""), Verdict::Final);
}

#[test]
fn c_03_hints_are_obeyed() {
    for name in ["x-should-retry", "stripe-should-retry"] {
        assert_eq!(verdict(404, &[(name, "true")], ""), RETRY);
        assert_eq!(verdict(501, &[(name, "True")], ""), RETRY);
        assert_eq!(verdict(200, &[(name, "true")], ""), Verdict::Final);
        assert_eq!(verdict(429, &[(name, "false")], ""), Verdict::Final);
        assert_eq!(verdict(503, &[(name, "false")], ""), Verdict::ToldToStop);
        assert_eq!(verdict(503, &[(name, "false")], "store-unavailable"), Verdict::ToldToStop);
        assert_eq!(verdict(409, &[(name, "false")], "in-progress"), Verdict::ToldToStop);
        assert_eq!(verdict(503, &[(name, "maybe")], ""), RETRY);
    }
}

#[test]
fn c_03_retry_after_is_read_in_both_forms() {
    let cases = [
        ("0", Some(0)),
        ("7", Some(7)),
        (" 7 ", Some(7)),
        ("99999999999999999999999", Some(u64::MAX)),
        ("Tue, 14 Nov 2023 22:13:30 GMT", Some(10)),
        ("Tue, 14 Nov 2023 22:13:10 GMT", Some(0)),
        ("-1", None),
        ("1.5", None),
        ("", None),
        ("soon", None),
    ];
    for (value, seconds) in cases {
        let after = seconds.map(Duration::from_secs);
        assert_eq!(verdict(503, &[("retry-after", value)], ""), Verdict::Retry { after }, "{value:?}");
    }
}

const POLICY: fn() -> RetryPolicy = || RetryPolicy::default().base(Duration::from_secs(1));

fn situation(policy: &RetryPolicy) -> Situation<'_> {
    Situation {
        policy,
        unrepeatable: None,
        earlier: 0,
        time_left: Duration::from_secs(10),
        lifetime_left: Duration::from_secs(100),
        random: u64::MAX,
    }
}

fn whole(pause: Result<Duration, Limit>) -> Result<u64, Limit> {
    pause.map(|pause| pause.as_millis().div_ceil(1000) as u64)
}

#[test]
fn c_03_retries_end_and_polls_do_not() {
    let policy = POLICY();
    let third = Situation { earlier: 2, ..situation(&policy) };
    assert_eq!(next(Again::Retry, None, &third), Err(Limit::Retries));
    assert_eq!(whole(next(Again::Poll, None, &third)), Ok(4));
}

#[test]
fn c_03_a_retry_waits_for_the_server_and_the_jitter() {
    let policy = POLICY();
    let after = Some(Duration::from_secs(3));
    assert_eq!(whole(next(Again::Retry, after, &situation(&policy))), Ok(4));
    assert_eq!(next(Again::Poll, after, &situation(&policy)), Ok(Duration::from_secs(3)));
    assert_eq!(whole(next(Again::Retry, None, &situation(&policy))), Ok(1));
}

#[test]
fn c_03_a_wait_of_zero_is_no_busy_loop() {
    let policy = POLICY();
    for after in [None, Some(Duration::ZERO)] {
        let polls = (0..3).map(|earlier| {
            whole(next(Again::Poll, after, &Situation { earlier, ..situation(&policy) })).unwrap()
        });
        assert!(polls.eq([1, 2, 4]), "{after:?}");
    }
    let policy = RetryPolicy::default().base(Duration::ZERO).cap(Duration::ZERO);
    let luckiest = Situation { random: 0, ..situation(&policy) };
    assert_eq!(next(Again::Poll, None, &luckiest), Ok(Duration::from_millis(10)));
    assert!(next(Again::Retry, None, &situation(&policy)).unwrap() > Duration::from_micros(900));
}

#[test]
fn c_03_a_wait_past_the_deadline_ends_the_call_at_once() {
    let policy = POLICY();
    for again in [Again::Retry, Again::Poll] {
        let after = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(next(again, after(10), &situation(&policy)), Err(Limit::Deadline));
        assert_eq!(next(again, after(u64::MAX), &situation(&policy)), Err(Limit::Deadline));
        assert!(next(again, after(8), &situation(&policy)).is_ok());
    }
}

#[test]
fn c_04_no_attempt_is_later_than_the_lifetime() {
    let policy = POLICY();
    let old = Situation { lifetime_left: Duration::from_secs(2), ..situation(&policy) };
    assert_eq!(next(Again::Poll, Some(Duration::from_secs(2)), &old), Err(Limit::Lifetime));
    assert_eq!(next(Again::Poll, Some(Duration::from_secs(1)), &old), Ok(Duration::from_secs(1)));
}

#[test]
fn c_02_what_cannot_be_sent_again_is_not() {
    let policy = POLICY();
    let spent = Situation { unrepeatable: Some(Limit::OneShotBody), ..situation(&policy) };
    assert_eq!(next(Again::Retry, None, &spent), Err(Limit::OneShotBody));
    assert_eq!(next(Again::Poll, None, &spent), Err(Limit::OneShotBody));
}
