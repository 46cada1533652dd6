use hapax_core::StoreErrorKind::{self, Full, Incompatible, TooLarge, Unavailable, Unknown};

use super::{Answered, Effect};

fn answered(status: u16, name: &str, more: &str) -> Answered {
    let body = format!(r#"{{"__type": "com.amazonaws.dynamodb.v20120810#{name}"{more}}}"#);
    Answered::read(status, body.as_bytes())
}

#[test]
fn what_the_service_says_is_judged_by_whether_it_was_applied() {
    let size = r#", "message": "Item size has exceeded the maximum allowed size""#;
    let cases: [(u16, &str, &str, Effect, StoreErrorKind); 10] = [
        (400, "ValidationException", size, Effect::Write, TooLarge),
        (400, "ValidationException", "", Effect::Write, Incompatible),
        (400, "ItemCollectionSizeLimitExceededException", "", Effect::Write, Full),
        (400, "ThrottlingException", "", Effect::Write, Unavailable),
        (400, "ResourceNotFoundException", "", Effect::Write, Unavailable),
        (400, "AccessDeniedException", "", Effect::Write, Unavailable),
        (400, "ExpiredTokenException", "", Effect::Write, Unavailable),
        (500, "InternalServerError", "", Effect::Write, Unknown),
        (503, "", "", Effect::Write, Unknown),
        (500, "InternalServerError", "", Effect::Read, Unavailable),
    ];
    for (status, name, more, effect, kind) in cases {
        assert_eq!(answered(status, name, more).judge(effect), kind, "{status} {name} {effect:?}");
    }
}

#[test]
fn only_what_was_not_applied_is_sent_again() {
    let cases = [
        ("ThrottlingException", "", true),
        ("ProvisionedThroughputExceededException", "", true),
        ("TransactionConflictException", "", true),
        (
            "TransactionCanceledException",
            r#", "CancellationReasons": [{"Code": "None"}, {"Code": "TransactionConflict"}]"#,
            true,
        ),
        (
            "TransactionCanceledException",
            r#", "CancellationReasons": [{"Code": "ConditionalCheckFailed"}, {"Code": "TransactionConflict"}]"#,
            false,
        ),
        ("TransactionCanceledException", r#", "CancellationReasons": [{"Code": "ValidationError"}]"#, false),
        ("ConditionalCheckFailedException", "", false),
        ("InternalServerError", "", false),
    ];
    for (name, more, is_passing) in cases {
        assert_eq!(answered(400, name, more).is_passing(), is_passing, "{name} {more}");
    }
}

#[test]
fn items_in_an_error_are_not_shown() {
    let more = r#", "CancellationReasons": [{"Code": "ValidationError", "Item": {"card": {"S": "canary"}}}]"#;
    let error = answered(400, "TransactionCanceledException", more).error("complete", Effect::Write);
    assert!(!format!("{error:?} {error}").contains("canary"), "{error:?}");
}

#[test]
fn anything_can_be_the_body_of_an_error() {
    for body in [&b""[..], b"<html>", b"[]", b"{\"__type\": 7}", b"\xff"] {
        let answered = Answered::read(502, body);
        assert_eq!(answered.judge(Effect::Write), Unknown);
        assert_eq!(answered.to_string(), "the service answered with HTTP status 502");
    }
}
