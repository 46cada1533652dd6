//! C-02: which answers and failures are retried.

use std::error::Error as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hapax_client::{Error, Last, Limit, UncertainCause};
use http_body::Frame;

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
    let server = Server::with([status(500), status(429), status(503)]).await;
    let error = client().post(server.url("/")).send().await.unwrap_err();
    let Error::Exhausted { key: Some(_), limit: Limit::Retries, attempts: 3, last, .. } = error else {
        panic!("{error:?}")
    };
    assert!(matches!(*last, Last::Response(response) if response.status() == 503));
    assert_eq!(server.count(), 3);
}

#[tokio::test]
async fn c_02_an_answer_of_a_gateway_at_the_end_is_an_unknown_outcome() {
    for script in [[502, 502, 502], [503, 503, 504], [504, 503, 503]] {
        let server = Server::with(script.map(status)).await;
        let error = client().post(server.url("/")).send().await.unwrap_err();
        let cause = UncertainCause::Transport;
        assert!(
            matches!(error, Error::Uncertain { key: Some(_), cause: found, attempts: 3, .. } if found == cause),
            "{script:?}: {error}"
        );
        assert!(
            error.source().unwrap().to_string().contains("the last attempt was answered 50"),
            "{error:?}"
        );
    }
    // The type says that the service was not reached.
    let refused = problem(502, "upstream-unavailable", &[]);
    let server = Server::with([refused.clone(), refused.clone(), refused]).await;
    let error = client().post(server.url("/")).send().await.unwrap_err();
    assert!(matches!(error, Error::Exhausted { limit: Limit::Retries, .. }), "{error}");

    let server = Server::with([answer(502, &[("x-should-retry", "false")], "")]).await;
    let error = client().post(server.url("/")).send().await.unwrap_err();
    assert!(matches!(error, Error::Uncertain { cause: UncertainCause::Server, attempts: 1, .. }), "{error}");
}

#[tokio::test]
async fn c_02_a_type_of_another_vendor_makes_no_effect_repeatable() {
    let foreign = r#"{"type":"https://shop.example/problems/overloaded"}"#;
    let foreign = answer(503, &[("content-type", "application/problem+json")], foreign);
    let server = Server::with([foreign.clone(), status(200)]).await;
    let error = client().put(server.url("/")).send().await.unwrap_err();
    assert!(matches!(error, Error::Exhausted { limit: Limit::Unkeyed, attempts: 1, .. }), "{error}");

    let server = Server::with([foreign, status(200)]).await;
    assert_eq!(client().post(server.url("/")).send().await.unwrap().attempts(), 2, "a key protects it");
    let server = Server::with([problem(503, "overloaded", &[]), status(200)]).await;
    assert_eq!(client().put(server.url("/")).send().await.unwrap().attempts(), 2);
}

/// A body whose source cannot be reached, after its request was sent.
struct Unreachable(Arc<reqwest::Error>);

impl http_body::Body for Unreachable {
    type Data = bytes::Bytes;
    type Error = Arc<reqwest::Error>;

    fn poll_frame(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<bytes::Bytes>, Self::Error>>> {
        Poll::Ready(Some(Err(Arc::clone(&self.0))))
    }
}

#[tokio::test]
async fn c_02_a_body_that_cannot_connect_is_no_request_that_was_not_sent() {
    let unreachable = reqwest::Client::new().get(refusing_url().await).send().await.unwrap_err();
    assert!(unreachable.is_connect());
    let unreachable = Arc::new(unreachable);
    let body = move || reqwest::Body::wrap(Unreachable(Arc::clone(&unreachable)));
    let server = Server::with([]).await;
    let error = client().put(server.url("/")).body_stream(body).send().await.unwrap_err();
    assert!(matches!(error, Error::Uncertain { key: None, attempts: 1, .. }), "{error}");
}
