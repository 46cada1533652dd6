use super::{describe, is_final};
use crate::rig::http::HttpReply;

fn reply(status: u16, body: &str) -> HttpReply {
    HttpReply { status, is_replay: false, fields: Vec::new(), body: body.into() }
}

#[test]
fn a_refusal_is_shown_with_the_code_of_its_problem_document() {
    let uncertain = reply(409, r#"{"type":"https://hapax.dev/errors/uncertain"}"#);
    assert_eq!(describe(Some(&uncertain)), "409 uncertain");
    assert_eq!(describe(Some(&reply(409, "in progress"))), "409");
    assert_eq!(describe(None), "no answer");
}

#[test]
fn a_retry_ends_with_an_outcome_or_an_unknown_one() {
    assert!(is_final(&reply(201, "{}")));
    assert!(is_final(&reply(409, r#"{"type":"https://hapax.dev/errors/uncertain"}"#)));
    assert!(!is_final(&reply(409, r#"{"type":"https://hapax.dev/errors/in-progress"}"#)));
    assert!(!is_final(&reply(502, "")));
}
