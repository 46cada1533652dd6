//! gRPC over tonic's own client and server: which responses are recorded, and the form of refusals.

use hapax::core::StoreErrorKind;
use hapax_testkit::{Fault, Op, Plan};
use http::{HeaderMap, StatusCode};
use tonic::metadata::MetadataMap;
use tonic::{Code, Status};

use super::grpc_server::{Ask, Booked, Bookkeeper, LISTED, UNLISTED};

const KEY: (&str, &str) = ("idempotency-key", "k-1");
const MARKER: &str = "x-idempotent-replayed";

fn is_replay(metadata: &MetadataMap) -> bool {
    metadata.get(MARKER).is_some_and(|value| value == "true")
}

/// Checks a refusal by the layer: its status, the code of its problem, and whether a client should retry automatically.
#[track_caller]
fn assert_refused(
    answer: Result<tonic::Response<Booked>, Status>,
    code: Code,
    problem: &str,
    should_retry: bool,
) {
    let status = answer.unwrap_err();
    assert_eq!(status.code(), code, "{status:?}");
    assert_eq!(status.message().split_once(": ").map(|(name, _)| name), Some(problem));
    let pushback = status.metadata().get("grpc-retry-pushback-ms").unwrap().to_str().unwrap();
    let pushback: i64 = pushback.parse().unwrap();
    assert_eq!(pushback > 0, should_retry, "{pushback}");
    assert!(should_retry || pushback == -1, "{pushback}");
    assert!(!is_replay(status.metadata()));
}

#[tokio::test]
async fn p_02_the_key_is_in_the_metadata_and_a_retry_is_replayed() {
    let server = Bookkeeper::start();
    for replayed in [false, true, true] {
        let answer = server.call(Ask::OK, &[KEY]).await.unwrap();
        assert_eq!(is_replay(answer.metadata()), replayed);
        let pages: Vec<_> = answer.metadata().get_all("x-page").iter().collect();
        assert_eq!(pages, ["1", "2"]);
        assert_eq!(answer.into_inner(), Booked { count: 1 });
    }
    let other = server.call(Ask::OK, &[("idempotency-key", "k-2")]).await.unwrap();
    assert_eq!(other.into_inner(), Booked { count: 2 });
}

#[tokio::test]
async fn t_05_a_replay_has_the_bytes_and_the_trailers_of_the_first_answer() {
    let server = Bookkeeper::start();
    let (first, first_data, first_trailers) = server.wire(Ask::OK, Some("k-1")).await;
    let (again, again_data, again_trailers) = server.wire(Ask::OK, Some("k-1")).await;
    assert_eq!((first.status, again.status), (StatusCode::OK, StatusCode::OK));
    assert!(!first_data.is_empty());
    assert_eq!(first_data, again_data);
    assert_eq!(first_trailers.as_ref().and_then(|trailers| trailers.get("grpc-status")).unwrap(), "0");
    assert_eq!(first_trailers, again_trailers);
    let without = |mut headers: HeaderMap, names: &[&str]| {
        names.iter().for_each(|name| drop(headers.remove(*name)));
        headers
    };
    assert_eq!(again.headers[MARKER], "true");
    assert_eq!(without(first.headers, &["date"]), without(again.headers, &["date", MARKER]));
}

#[tokio::test]
async fn t_05_the_status_in_the_trailers_decides_what_is_recorded() {
    let pinned = [
        Code::InvalidArgument,
        Code::NotFound,
        Code::AlreadyExists,
        Code::FailedPrecondition,
        Code::OutOfRange,
        Code::Unimplemented,
        Code::DataLoss,
    ];
    let uncertain = [Code::Cancelled, Code::Unknown, Code::DeadlineExceeded];
    let server = Bookkeeper::start();
    for number in 1..=16 {
        let code = Code::from(number);
        let key = format!("k-{number}");
        let before = server.world.effects.count();
        let first = server.call(Ask { say: number }, &[("idempotency-key", &key)]).await.unwrap_err();
        let again = server.call(Ask { say: number }, &[("idempotency-key", &key)]).await.unwrap_err();
        if uncertain.contains(&code) {
            assert_refused(Err(again), Code::Aborted, "uncertain", false);
            assert_eq!((first.code(), server.world.effects.count() - before), (code, 1));
            continue;
        }
        assert_eq!((first.code(), again.code()), (code, code));
        assert_eq!(again.metadata().get("x-reason").unwrap(), "planned");
        let is_pinned = pinned.contains(&code);
        assert_eq!(is_replay(again.metadata()), is_pinned, "{code:?}");
        assert_eq!(first.message() == again.message(), is_pinned, "{code:?}");
        assert_eq!(server.world.effects.count() - before, if is_pinned { 1 } else { 2 }, "{code:?}");
    }
}

#[tokio::test]
async fn p_02_a_missing_or_invalid_key_is_an_invalid_argument() {
    let server = Bookkeeper::start();
    let check = async |metadata: &[(&'static str, &str)], problem: &str| {
        assert_refused(server.call(Ask::OK, metadata).await, Code::InvalidArgument, problem, false);
    };
    check(&[], "key-missing").await;
    check(&[("idempotency-key", "\"open")], "key-invalid").await;
    check(&[KEY, KEY], "key-invalid").await;
    check(&[("idempotency-key", &"x".repeat(256))], "key-invalid").await;
    assert_eq!((server.world.effects.count(), server.world.faulty.calls()), (0, 0));
}

#[tokio::test]
async fn p_02_a_key_of_another_request_is_a_failed_precondition() {
    let server = Bookkeeper::start();
    server.call(Ask::OK, &[KEY]).await.unwrap();
    let other = Ask { say: 5 };
    assert_refused(server.call(other, &[KEY]).await, Code::FailedPrecondition, "key-reused", false);
    assert_eq!(server.world.effects.count(), 1);
}

#[tokio::test]
async fn p_02_a_call_in_flight_aborts_its_duplicates_with_a_retry_delay() {
    let server = Bookkeeper::start();
    let first = server.call(Ask::SLOW, &[KEY]);
    let duplicate = async {
        server.began.notified().await;
        let duplicate = server.call(Ask::SLOW, &[KEY]).await;
        server.finish.notify_one();
        duplicate
    };
    let (first, duplicate) = tokio::join!(first, duplicate);
    assert_refused(duplicate, Code::Aborted, "in-progress", true);
    assert_eq!(first.unwrap().into_inner(), Booked { count: 1 });
    assert!(is_replay(server.call(Ask::SLOW, &[KEY]).await.unwrap().metadata()));
}

#[tokio::test]
async fn p_02_an_unknown_outcome_aborts_and_forbids_a_retry() {
    let server = Bookkeeper::start();
    for _ in 0..2 {
        assert_refused(server.call(Ask::PANIC, &[KEY]).await, Code::Aborted, "uncertain", false);
    }
    assert_eq!(server.world.effects.count(), 1);
}

#[tokio::test]
async fn p_02_with_the_store_down_calls_are_unavailable_and_nothing_runs() {
    let server = Bookkeeper::start();
    let down = Fault::ErrorBefore(StoreErrorKind::Unavailable);
    server.world.faulty.set_plan(Plan::new().always(Op::Claim, down));
    assert_refused(server.call(Ask::OK, &[KEY]).await, Code::Unavailable, "store-unavailable", true);
    assert_eq!(server.world.effects.count(), 0);
    server.world.faulty.set_plan(Plan::new());
    assert_eq!(server.call(Ask::OK, &[KEY]).await.unwrap().into_inner(), Booked { count: 1 });
}

#[tokio::test]
async fn p_02_refusals_are_trailers_only() {
    let server = Bookkeeper::start();
    server.wire(Ask::OK, Some("k-1")).await;
    server.wire(Ask::PANIC, Some("k-2")).await;
    for (ask, key, status) in [
        (Ask::OK, None, "3"),
        (Ask::OK, Some("\"open"), "3"),
        (Ask { say: 5 }, Some("k-1"), "9"),
        (Ask::PANIC, Some("k-2"), "10"),
    ] {
        let (head, data, trailers) = server.wire(ask, key).await;
        assert_eq!(head.status, StatusCode::OK);
        assert_eq!(head.headers["content-type"], "application/grpc");
        assert_eq!(head.headers["grpc-status"], status, "{key:?}");
        assert!(data.is_empty() && trailers.is_none(), "{key:?}");
    }
}

#[tokio::test]
async fn p_02_methods_that_are_not_listed_pass_unchanged() {
    let server = Bookkeeper::start();
    for count in 1..=2 {
        let answer = server.call_method(UNLISTED, Ask::OK, &[KEY]).await.unwrap();
        assert!(!is_replay(answer.metadata()));
        assert_eq!(answer.into_inner(), Booked { count });
    }
    for count in 3..=4 {
        assert_eq!(server.watch("k-1").await, [Booked { count }, Booked { count }]);
    }
    // A key is not required either.
    server.call_method(UNLISTED, Ask::OK, &[]).await.unwrap();
    assert_eq!(server.world.faulty.calls(), 0);
}

/// tonic's server and its channel both cancel a call at its `grpc-timeout`.
#[tokio::test]
async fn x_08_a_claimed_call_outlives_the_deadline_of_its_caller() {
    let (server, service) = Bookkeeper::behind_a_gateway();
    let cut_short = server.call(Ask::SLOW, &[KEY, ("grpc-timeout", "500m")]).await.unwrap_err();
    assert!(matches!(cut_short.code(), Code::Cancelled | Code::DeadlineExceeded), "{cut_short:?}");
    service.finish.notify_one();
    // The retry gets the response as soon as there is one.
    let answer = loop {
        match server.call(Ask::SLOW, &[KEY]).await {
            Err(status) if status.message().starts_with("in-progress: ") => tokio::task::yield_now().await,
            answer => break answer.unwrap(),
        }
    };
    assert_eq!(answer.into_inner(), Booked { count: 1 });
    assert_eq!(service.world.effects.count(), 1);
}

#[tokio::test]
async fn p_02_deadlines_and_attempt_counters_do_not_count() {
    let server = Bookkeeper::start();
    server.call(Ask::OK, &[KEY, ("grpc-timeout", "30S")]).await.unwrap();
    let retries: [&[(&str, &str)]; 3] = [
        &[KEY],
        &[KEY, ("grpc-timeout", "29S")],
        &[KEY, ("grpc-timeout", "28S"), ("grpc-previous-rpc-attempts", "1")],
    ];
    for metadata in retries {
        let answer = server.call_method(LISTED, Ask::OK, metadata).await.unwrap();
        assert!(is_replay(answer.metadata()), "{metadata:?}");
    }
}
