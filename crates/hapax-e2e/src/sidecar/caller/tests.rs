use std::time::Duration;

use super::{Said, said};
use crate::http_rounds::client::Told;

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
    assert!(matches!(said(&own(404)), Said::Answer { is_replay: true, .. }));
    assert_eq!(said(&own(503)), Said::Again);
}
