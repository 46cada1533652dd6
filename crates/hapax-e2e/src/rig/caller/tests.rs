use std::time::Duration;

use super::{AnswerSource, AttemptResult, Caller, attempt_result};
use crate::rig::http::HttpReply;
use tokio::sync::watch;

fn problem(status: u16, code: &str) -> HttpReply {
    let fields = vec![
        ("content-type".to_owned(), "application/problem+json".to_owned()),
        ("retry-after".to_owned(), "3".to_owned()),
    ];
    let body = format!(r#"{{"type":"https://example.org/errors/{code}","operation":"77"}}"#);
    HttpReply { status, is_replay: false, fields, body: body.into() }
}

#[test]
fn problem_codes_decide_whether_to_retry() {
    let cases = [
        (problem(409, "uncertain"), AttemptResult::Uncertain(Some("77".to_owned()))),
        (problem(502, "uncertain"), AttemptResult::Uncertain(Some("77".to_owned()))),
        (problem(409, "result-unavailable"), AttemptResult::Unavailable),
        (problem(409, "in-progress"), AttemptResult::InProgress(Duration::from_secs(3))),
        (problem(502, "upstream-unavailable"), AttemptResult::Retry),
        (problem(422, "key-reused"), AttemptResult::Unexpected("422 key-reused".to_owned())),
    ];
    for (reply, expected) in cases {
        assert_eq!(attempt_result(&reply), expected);
    }
}

#[test]
fn errors_of_the_service_are_answers_unless_they_are_5xx() {
    let own = |status| HttpReply { status, is_replay: true, fields: Vec::new(), body: b"order".to_vec() };
    let replayed = attempt_result(&own(404));
    assert!(matches!(replayed, AttemptResult::Answered { source: AnswerSource::Replay, .. }));
    assert_eq!(attempt_result(&own(503)), AttemptResult::Retry);
}

#[test]
fn the_recorded_field_distinguishes_unrecorded_answers() {
    let fields = vec![("idempotency-recorded".to_owned(), "false".to_owned())];
    let reply = HttpReply { status: 201, is_replay: false, fields, body: b"order".to_vec() };
    let unrecorded = attempt_result(&reply);
    assert!(matches!(unrecorded, AttemptResult::Answered { source: AnswerSource::Unrecorded, .. }));
    let recorded = attempt_result(&HttpReply { fields: Vec::new(), ..reply });
    assert!(matches!(recorded, AttemptResult::Answered { source: AnswerSource::Executed, .. }));
}

#[test]
fn dead_sidecars_are_skipped() {
    let address = |port: u16| Some(([127, 0, 0, 1], port).into());
    let sidecars = [address(1), None, address(3)].map(watch::Sender::new);
    let mut caller = Caller::new(sidecars.iter().map(watch::Sender::subscribe).collect(), 0);
    let addresses: Vec<_> = (0..4).map(|_| caller.next_address()).collect();
    assert_eq!(addresses, [address(1), address(3), address(3), address(1)]);
    for sidecar in &sidecars {
        sidecar.send_replace(None);
    }
    assert_eq!(caller.next_address(), None);
}
