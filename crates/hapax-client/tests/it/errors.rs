//! Refusals and other ends of a call, as typed errors that keep the key.

use std::error::Error as _;

use hapax_client::{Error, Key, UncertainCause};
use serde::Deserialize;

use crate::server::{Server, Step, answer, client, problem, status};

fn key() -> Key {
    Key::new("order-4711-secret").unwrap()
}

/// The error of a call that gets these answers.
async fn ending(script: Vec<Step>) -> Error {
    let server = Server::with(script).await;
    client().post(server.url("/")).key(key()).body("card 4242").send().await.unwrap_err()
}

#[tokio::test]
async fn c_02_an_outcome_that_the_server_does_not_know_ends_the_call() {
    for code in [409, 500, 502, 504] {
        let error = ending(vec![problem(code, "uncertain", &[("retry-after", "0")])]).await;
        let Error::Uncertain { cause: UncertainCause::Server, operation, attempts: 1, .. } = &error else {
            panic!("{error:?}")
        };
        assert_eq!((operation.as_deref(), error.key()), (Some("5f1c"), Some(&key())));
    }
}

#[tokio::test]
async fn c_02_refusals_of_the_layer_are_typed() {
    for (code, name) in
        [(400, "key-missing"), (400, "key-expired"), (409, "result-unavailable"), (413, "too-large")]
    {
        let error = ending(vec![problem(code, name, &[])]).await;
        let Error::Refused { status, problem, .. } = &error else { panic!("{error:?}") };
        assert_eq!((status.as_u16(), problem.code(), error.key()), (code, name, Some(&key())));
    }
    let error = ending(vec![problem(422, "key-reused", &[])]).await;
    assert!(matches!(error, Error::Mismatch { .. }), "{error}");
}

#[tokio::test]
async fn c_04_lost_answers_end_as_an_unknown_outcome_with_the_key() {
    let error = ending(vec![Step::CloseRead, Step::CloseRead, Step::CloseRead]).await;
    assert!(
        matches!(&error, Error::Uncertain { cause: UncertainCause::Transport, attempts: 3, .. }),
        "{error}"
    );
    assert_eq!(error.key(), Some(&key()));
    assert!(error.source().is_some());

    let error = ending(vec![Step::CloseRead, status(503), status(503)]).await;
    assert!(matches!(&error, Error::Uncertain { cause: UncertainCause::Transport, .. }), "{error}");
}

#[tokio::test]
async fn c_04_a_refusal_says_nothing_about_an_attempt_whose_answer_was_lost() {
    for refusal in [
        status(302),
        status(401),
        status(403),
        status(407),
        answer(429, &[("x-should-retry", "false")], ""),
        problem(400, "principal-missing", &[]),
        problem(401, "signature-invalid", &[]),
    ] {
        let error = ending(vec![Step::CloseRead, refusal]).await;
        assert!(
            matches!(error, Error::Uncertain { cause: UncertainCause::Transport, attempts: 2, .. }),
            "{error}"
        );
        assert_eq!(error.key(), Some(&key()));
        assert!(error.source().unwrap().to_string().starts_with("a later attempt was"), "{error:?}");
    }
    let error = ending(vec![Step::CloseRead, problem(400, "key-expired", &[])]).await;
    assert!(matches!(error, Error::Uncertain { cause: UncertainCause::Lifetime, .. }), "{error}");
    let error = ending(vec![Step::CloseRead, problem(409, "result-unavailable", &[])]).await;
    assert!(matches!(error, Error::Refused { .. }), "{error}");
}

#[tokio::test]
async fn c_04_a_replayed_refusal_is_the_answer_of_a_lost_attempt() {
    let replay = answer(403, &[("x-idempotent-replayed", "true")], "");
    for (last, code) in [(replay, 403), (status(404), 404), (status(422), 422)] {
        let server = Server::with([Step::CloseRead, last]).await;
        let response = client().post(server.url("/")).send().await.unwrap();
        assert_eq!((response.status().as_u16(), response.attempts()), (code, 2));
    }
    let server = Server::with([Step::CloseRead, status(403)]).await;
    assert_eq!(client().get(server.url("/")).send().await.unwrap().status(), 403);
}

#[tokio::test]
async fn c_04_a_failure_that_may_hide_an_effect_is_no_proof_against_it() {
    for (first, is_unknown) in [(status(500), true), (problem(503, "store-unavailable", &[]), false)] {
        let server = Server::that_ends([first]).await;
        let error = client().post(server.url("/")).send().await.unwrap_err();
        match error {
            Error::Uncertain { cause: UncertainCause::Transport, attempts: 3, .. } => assert!(is_unknown),
            Error::Exhausted { attempts: 3, .. } => assert!(!is_unknown),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn messages_contain_no_key_and_no_body() {
    for script in [
        vec![problem(409, "uncertain", &[])],
        vec![problem(400, "key-invalid", &[])],
        vec![problem(422, "key-reused", &[])],
        vec![problem(409, "in-progress", &[("retry-after", "3600")])],
        vec![status(503), status(503), status(503)],
        vec![Step::CloseRead, Step::CloseRead, Step::CloseRead],
    ] {
        let error = ending(script).await;
        let shown = format!("{error} {error:?} {:?}", error.source());
        assert!(!shown.contains("4711") && !shown.contains("4242"), "{shown}");
        assert!(error.to_string().starts_with(char::is_lowercase), "{error}");
        assert!(error.key().is_some());
    }
}

#[derive(Deserialize, Debug, PartialEq)]
struct Order {
    id: u32,
}

#[tokio::test]
async fn json_in_json_out() {
    let server = Server::with([
        answer(201, &[], r#"{"id":7}"#),
        answer(201, &[], "<html>"),
        answer(404, &[], "unknown item"),
    ])
    .await;
    let (client, url) = (client(), server.url("/orders"));
    assert_eq!(client.post_json::<_, Order>(&url, "book").await.unwrap(), Order { id: 7 });
    assert_eq!(server.seen()[0].body, b"\"book\"");

    let error = client.post_json::<_, Order>(&url, "book").await.unwrap_err();
    assert!(matches!(error, Error::Decode { key: Some(_), .. }), "{error}");

    let Error::Status(response) = client.post_json::<_, Order>(&url, "book").await.unwrap_err() else {
        panic!()
    };
    assert_eq!(response.status(), 404);
    assert_eq!(response.bytes().await.unwrap(), "unknown item");
}

#[tokio::test]
async fn a_request_that_is_not_valid_is_not_sent() {
    let client = client();
    for call in [
        client.post("not a url"),
        client.post("http://localhost/").header("bad name", "x"),
        client.post("http://localhost/").header("x", "bad\nvalue"),
        client.post("mailto:a@example.org"),
    ] {
        let error = call.send().await.unwrap_err();
        assert!(matches!(error, Error::Request(_)), "{error:?}");
    }
}
