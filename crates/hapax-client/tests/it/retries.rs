//! C-02: which answers and failures are retried.

use std::time::Duration;

use hapax_client::{Error, Last, Limit, UncertainCause};

use crate::server::{Server, Step, answer, client, cut, problem, quick, refusing_url, status};

#[tokio::test]
async fn c_02_lost_requests_and_answers_are_retried() {
    for lost in [Step::CloseUnread, Step::CloseRead, cut(201), cut(500), Step::Hang] {
        let server = Server::with([lost.clone(), status(201)]).await;
        let call = client().post(server.url("/")).attempt_timeout(Duration::from_millis(300));
        let response = call.body("book").send().await.unwrap();
        assert_eq!((response.status().as_u16(), response.attempts()), (201, 2), "{lost:?}");
        let seen = server.seen();
        assert!(seen.iter().all(|request| request.key() == seen[0].key()), "{lost:?}");
    }
}

#[tokio::test]
async fn c_02_transient_statuses_are_retried() {
    for transient in [408, 425, 429, 500, 502, 503, 504] {
        let server = Server::with([status(transient), status(200)]).await;
        assert_eq!(client().post(server.url("/")).send().await.unwrap().attempts(), 2, "{transient}");
    }
}

#[tokio::test]
async fn c_02_other_answers_are_final() {
    for last in [200, 204, 303, 400, 401, 403, 404, 409, 422, 501] {
        let server = Server::with([status(last)]).await;
        let response = client().post(server.url("/")).send().await.unwrap();
        assert_eq!((response.status().as_u16(), response.attempts()), (last, 1));
    }
}

#[tokio::test]
async fn c_02_a_replayed_failure_is_final() {
    let server = Server::with([answer(503, &[("X-Idempotent-Replayed", "true")], "no stock")]).await;
    let response = client().post(server.url("/")).send().await.unwrap();
    assert!(response.replayed());
    assert_eq!((response.status().as_u16(), response.attempts()), (503, 1));
    assert_eq!(response.bytes().await.unwrap(), "no stock");
}

#[tokio::test]
async fn c_02_a_cut_off_refusal_is_not_sent_again() {
    for refusal in [400, 401, 403, 422] {
        let server = Server::with([cut(refusal)]).await;
        let error = client().post(server.url("/")).send().await.unwrap_err();
        let cause = UncertainCause::Transport;
        assert!(matches!(error, Error::Uncertain { cause: found, .. } if found == cause), "{error}");
        assert_eq!(server.count(), 1, "{refusal}");
    }
}

#[tokio::test]
async fn c_02_an_operation_in_progress_is_waited_for_beyond_the_retries() {
    let running = std::iter::repeat_n(problem(409, "in-progress", &[("retry-after", "0")]), 7);
    let server = Server::with(running.chain([status(201)])).await;
    let call = client().post(server.url("/")).retry(quick().retries_max(0));
    assert_eq!(call.send().await.unwrap().attempts(), 8);
}

#[tokio::test]
async fn c_02_a_safe_request_is_retried_without_a_key() {
    let server = Server::with([Step::CloseRead, status(503), status(200)]).await;
    let response = client().get(server.url("/")).send().await.unwrap();
    assert_eq!((response.attempts(), response.key()), (3, None));

    let server = Server::with([Step::CloseRead, Step::CloseRead, Step::CloseRead]).await;
    let error = client().get(server.url("/")).send().await.unwrap_err();
    assert!(matches!(error, Error::Exhausted { limit: Limit::Retries, .. }), "{error}");
}

#[tokio::test]
async fn c_02_an_effect_without_a_key_is_not_sent_again() {
    let server = Server::with([status(503)]).await;
    let error = client().put(server.url("/")).send().await.unwrap_err();
    assert!(matches!(error, Error::Exhausted { limit: Limit::Unkeyed, .. }), "{error}");

    let server = Server::with([Step::CloseRead]).await;
    let error = client().delete(server.url("/")).send().await.unwrap_err();
    assert!(matches!(error, Error::Uncertain { key: None, .. }), "{error}");
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn c_02_a_request_that_reached_no_server_is_not_uncertain() {
    let url = refusing_url().await;
    for call in [client().post(&url), client().put(&url)] {
        let error = call.send().await.unwrap_err();
        let Error::Exhausted { limit: Limit::Retries, attempts: 3, last, .. } = error else {
            panic!("{error:?}")
        };
        assert!(matches!(*last, Last::Failure(_)), "{last:?}");
    }
}

#[tokio::test]
async fn c_02_the_retries_have_an_end() {
    let server = Server::with([status(500), status(502), status(503)]).await;
    let error = client().post(server.url("/")).send().await.unwrap_err();
    let Error::Exhausted { key: Some(_), limit: Limit::Retries, attempts: 3, last, .. } = error else {
        panic!("{error:?}")
    };
    assert!(matches!(*last, Last::Response(response) if response.status() == 503));
    assert_eq!(server.count(), 3);
}
