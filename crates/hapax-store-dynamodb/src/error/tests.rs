use hapax_core::StoreErrorKind::{self, Full, Incompatible, TooLarge, Unavailable, Unknown};

use super::{Effect, ServiceError};

fn answered(status: u16, name: &str, more: &str) -> ServiceError {
    let body = format!(r#"{{"__type": "com.amazonaws.dynamodb.v20120810#{name}"{more}}}"#);
    ServiceError::read(status, body.as_bytes())
}

#[test]
fn errors_are_classified_by_whether_the_write_was_applied() {
    let size = r#", "message": "Item size has exceeded the maximum allowed size""#;
    let invalid = r#", "CancellationReasons": [{"Code": "None"}, {"Code": "ValidationError"}]"#;
    let cases: [(u16, &str, &str, Effect, StoreErrorKind); 12] = [
        (400, "ValidationException", size, Effect::Write, TooLarge),
        (400, "ValidationException", "", Effect::Write, Incompatible),
        (400, "ItemCollectionSizeLimitExceededException", "", Effect::Write, Full),
        (400, "TransactionCanceledException", invalid, Effect::Write, Incompatible),
        (400, "TransactionCanceledException", "", Effect::Write, Unavailable),
        (400, "ThrottlingException", "", Effect::Write, Unavailable),
        (400, "ResourceNotFoundException", "", Effect::Write, Unavailable),
        (400, "AccessDeniedException", "", Effect::Write, Unavailable),
        (400, "ExpiredTokenException", "", Effect::Write, Unavailable),
        (500, "InternalServerError", "", Effect::Write, Unknown),
        (503, "", "", Effect::Write, Unknown),
        (500, "InternalServerError", "", Effect::Read, Unavailable),
    ];
    for (status, name, more, effect, kind) in cases {
        assert_eq!(answered(status, name, more).kind(effect), kind, "{status} {name} {effect:?}");
    }
}

#[test]
fn only_unapplied_calls_are_retried() {
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
    for (name, more, is_retryable) in cases {
        assert_eq!(answered(400, name, more).is_retryable(), is_retryable, "{name} {more}");
    }
}

#[test]
fn errors_do_not_show_items() {
    let more = r#", "CancellationReasons": [{"Code": "ValidationError", "Item": {"card": {"S": "canary"}}}]"#;
    let error = answered(400, "TransactionCanceledException", more).error("complete", Effect::Write);
    assert!(!format!("{error:?} {error}").contains("canary"), "{error:?}");
}

#[test]
fn any_error_body_is_accepted() {
    for body in [&b""[..], b"<html>", b"[]", b"{\"__type\": 7}", b"\xff"] {
        let answered = ServiceError::read(502, body);
        assert_eq!(answered.kind(Effect::Write), Unknown);
        assert_eq!(answered.to_string(), "the service answered with HTTP status 502");
    }
}
