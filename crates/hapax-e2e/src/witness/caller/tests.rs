use std::time::Duration;

use super::{Caller, Mark, Said, said};
use crate::http_rounds::client::Told;
use tokio::sync::watch;

fn problem(status: u16, code: &str) -> Told {
    let fields = vec![
        ("content-type".to_owned(), "application/problem+json".to_owned()),
        ("retry-after".to_owned(), "3".to_owned()),
    ];
    let body = format!(r#"{{"type":"https://example.org/errors/{code}","operation":"77"}}"#);
    Told { status, is_replay: false, fields, body: body.into() }
}

#[test]
fn what_is_told_decides_whether_to_come_again() {
    let cases = [
        (problem(409, "uncertain"), Said::Uncertain(Some("77".to_owned()))),
        (problem(502, "uncertain"), Said::Uncertain(Some("77".to_owned()))),
        (problem(409, "result-unavailable"), Said::Unavailable),
        (problem(409, "in-progress"), Said::InProgress(Duration::from_secs(3))),
        (problem(502, "upstream-unavailable"), Said::Again),
        (problem(422, "key-reused"), Said::Other("422 key-reused".to_owned())),
    ];
    for (told, expected) in cases {
        assert_eq!(said(&told), expected);
    }
}

#[test]
fn the_services_own_errors_are_answers_unless_it_was_busy() {
    let own = |status| Told { status, is_replay: true, fields: Vec::new(), body: b"order".to_vec() };
    assert!(matches!(said(&own(404)), Said::Answer { mark: Mark::Replay, .. }));
    assert_eq!(said(&own(503)), Said::Again);
}

#[test]
fn an_answer_that_is_not_recorded_is_told_apart() {
    let fields = vec![("idempotency-recorded".to_owned(), "false".to_owned())];
    let told = Told { status: 201, is_replay: false, fields, body: b"order".to_vec() };
    assert!(matches!(said(&told), Said::Answer { mark: Mark::Unrecorded, .. }));
    let told = Told { fields: Vec::new(), ..told };
    assert!(matches!(said(&told), Said::Answer { mark: Mark::First, .. }));
}

#[test]
fn the_dead_are_passed_over() {
    let address = |port: u16| Some(([127, 0, 0, 1], port).into());
    let sidecars = [address(1), None, address(3)].map(watch::Sender::new);
    let mut caller = Caller::new(sidecars.iter().map(watch::Sender::subscribe).collect(), 0);
    let places: Vec<_> = (0..4).map(|_| caller.place()).collect();
    assert_eq!(places, [address(1), address(3), address(3), address(1)]);
    for sidecar in &sidecars {
        sidecar.send_replace(None);
    }
    assert_eq!(caller.place(), None);
}
