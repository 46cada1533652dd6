//! C-03: deadline, budget, hints.

use std::time::Duration;

use hapax_client::{Error, Limit, RetryBudget};

use crate::server::{Server, Step, answer, builder, client, problem, status};

#[tokio::test]
async fn c_03_a_wait_past_the_deadline_is_not_begun() {
    for (refusal, is_running) in [(status_with_wait(503), false), (status_with_wait(429), false)]
        .into_iter()
        .chain([(problem(409, "in-progress", &[("retry-after", "3600")]), true)])
    {
        let server = Server::with([refusal]).await;
        let error = client().post(server.url("/")).send().await.unwrap_err();
        match error {
            Error::Exhausted { limit: Limit::Deadline, .. } => assert!(!is_running),
            Error::InProgress { limit: Limit::Deadline, attempts: 1, .. } => assert!(is_running),
            other => panic!("{other:?}"),
        }
        assert_eq!(server.count(), 1);
    }
}

fn status_with_wait(status: u16) -> Step {
    answer(status, &[("retry-after", "3600")], "")
}

#[tokio::test]
async fn c_03_a_date_within_the_deadline_is_waited_for() {
    let past = "Tue, 14 Nov 2023 22:13:10 GMT";
    let server = Server::with([answer(503, &[("retry-after", past)], ""), status(200)]).await;
    assert_eq!(client().post(server.url("/")).send().await.unwrap().attempts(), 2);
}

#[tokio::test]
async fn c_03_a_call_without_time_is_not_sent() {
    let server = Server::with([]).await;
    let call = client().post(server.url("/")).deadline(Duration::ZERO);
    let error = call.send().await.unwrap_err();
    assert!(matches!(error, Error::Exhausted { limit: Limit::Deadline, attempts: 0, .. }), "{error}");
    assert_eq!(server.count(), 0);
}

#[tokio::test]
async fn c_03_the_deadline_ends_an_attempt() {
    let server = Server::with([Step::Hang]).await;
    let error = client().post(server.url("/")).deadline(Duration::from_millis(200)).send().await.unwrap_err();
    assert!(matches!(error, Error::Uncertain { key: Some(_), .. }), "{error}");
}

#[tokio::test]
async fn c_03_all_calls_of_a_client_share_its_budget() {
    let server = Server::with(std::iter::repeat_n(status(503), 6)).await;
    let client = builder().budget(RetryBudget::new(3, 0)).build().unwrap();
    let mut limits = Vec::new();
    for _ in 0..3 {
        match client.clone().post(server.url("/")).send().await.unwrap_err() {
            Error::Exhausted { limit, .. } => limits.push(limit),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(limits, [Limit::Retries, Limit::Budget, Limit::Budget]);
    assert_eq!(server.count(), 3 + 2 + 1);
}

#[tokio::test]
async fn c_03_waiting_for_an_operation_takes_nothing_from_the_budget() {
    let server =
        Server::with([problem(409, "in-progress", &[]), problem(409, "in-progress", &[]), status(200)]).await;
    let client = builder().budget(RetryBudget::new(0, 0)).build().unwrap();
    assert_eq!(client.post(server.url("/")).send().await.unwrap().attempts(), 3);
}

#[tokio::test]
async fn c_03_hints_of_the_server_are_obeyed() {
    let server = Server::with([answer(503, &[("x-should-retry", "false")], "")]).await;
    let error = client().post(server.url("/")).send().await.unwrap_err();
    assert!(matches!(error, Error::Exhausted { limit: Limit::Told, attempts: 1, .. }), "{error}");

    let server = Server::with([problem(409, "in-progress", &[("x-should-retry", "false")])]).await;
    let error = client().post(server.url("/")).send().await.unwrap_err();
    assert!(matches!(error, Error::InProgress { limit: Limit::Told, .. }), "{error}");

    let server = Server::with([answer(404, &[("x-should-retry", "true")], ""), status(200)]).await;
    assert_eq!(client().post(server.url("/")).send().await.unwrap().attempts(), 2);

    let server = Server::with([answer(422, &[("x-should-retry", "true")], "")]).await;
    assert_eq!(client().post(server.url("/")).send().await.unwrap().status(), 422);
}
