//! C-04: the lifetime of keys, and redirects.

use std::time::{Duration, SystemTime};

use hapax_client::{Error, Key, UncertainCause};

use crate::server::{Server, Step, answer, builder, client, problem, status};

const DAY: Duration = Duration::from_secs(24 * 3600);

#[tokio::test]
async fn c_04_a_key_past_its_lifetime_is_not_sent() {
    let server = Server::with([]).await;
    let long_ago = SystemTime::now() - DAY - Duration::from_secs(1);
    let error = client().post(server.url("/")).key(Key::new("a").unwrap()).key_made_at(long_ago).send().await;
    let error = error.unwrap_err();
    assert!(
        matches!(error, Error::Uncertain { cause: UncertainCause::Lifetime, attempts: 0, .. }),
        "{error}"
    );
    assert_eq!(error.key(), Some(&Key::new("a").unwrap()));
    assert_eq!(server.count(), 0);
}

#[tokio::test]
async fn c_04_a_uuid_says_when_it_was_made() {
    let server = Server::with([status(200), status(200), status(200)]).await;
    // Of January 2023.
    let old = "01857424-8c00-7000-8000-000000000000";
    let error = client().post(server.url("/")).key(Key::new(old).unwrap()).send().await.unwrap_err();
    assert!(matches!(error, Error::Uncertain { cause: UncertainCause::Lifetime, .. }), "{error}");

    let number = Key::new("00000000000000000000004711").unwrap();
    client().post(server.url("/")).key(number).send().await.unwrap();
    client().post(server.url("/")).key(Key::random()).send().await.unwrap();
    let patient = builder().lifetime(DAY * 10_000).build().unwrap();
    patient.post(server.url("/")).key(Key::new(old).unwrap()).send().await.unwrap();
}

#[tokio::test]
async fn c_04_a_wait_past_the_lifetime_ends_as_an_unknown_outcome() {
    let lifetime = Duration::from_secs(10);
    let client = builder().lifetime(lifetime).deadline(Duration::from_secs(20)).build().unwrap();
    let server = Server::with([answer(503, &[("retry-after", "15")], "")]).await;
    let error = client.post(server.url("/")).send().await.unwrap_err();
    assert!(
        matches!(error, Error::Uncertain { cause: UncertainCause::Lifetime, key: Some(_), .. }),
        "{error}"
    );

    let server = Server::with([problem(409, "in-progress", &[("retry-after", "15")])]).await;
    let error = client.post(server.url("/")).send().await.unwrap_err();
    assert!(
        matches!(error, Error::Uncertain { cause: UncertainCause::Lifetime, key: Some(_), .. }),
        "{error}"
    );
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn c_04_a_redirect_within_the_origin_keeps_key_and_body() {
    for code in [307, 308] {
        let server = Server::with([answer(code, &[("location", "/v2/orders?a=b")], ""), status(201)]).await;
        let response = client().post(server.url("/orders")).body("book").send().await.unwrap();
        assert_eq!((response.status().as_u16(), response.attempts()), (201, 1));
        let seen = server.seen();
        assert_eq!(seen[1].line, "POST /v2/orders?a=b HTTP/1.1");
        assert_eq!((seen[1].key(), &seen[1].body), (seen[0].key(), &seen[0].body));
    }
}

#[tokio::test]
async fn c_04_a_key_never_goes_to_another_origin() {
    let other = Server::with([]).await;
    for client in [client(), hapax_client::Client::new()] {
        let server = Server::with([answer(307, &[("location", &other.url("/orders"))], "")]).await;
        let response = client.post(server.url("/orders")).send().await.unwrap();
        assert_eq!(response.status(), 307);
    }
    assert_eq!(other.count(), 0);
}

#[tokio::test]
async fn c_04_redirects_without_end_are_answers() {
    let server = Server::with(std::iter::repeat_n(answer(307, &[("location", "/")], ""), 20)).await;
    let response = client().post(server.url("/")).send().await.unwrap();
    assert_eq!((response.status().as_u16(), server.count()), (307, 6));
}

#[tokio::test]
async fn c_04_a_one_shot_body_is_not_redirected() {
    let server = Server::with([answer(307, &[("location", "/v2")], "")]).await;
    let response = client().post(server.url("/")).body_once("book").send().await.unwrap();
    assert_eq!(response.status(), 307);
}

#[tokio::test]
async fn c_04_an_attempt_ends_with_the_lifetime() {
    let client = builder().lifetime(Duration::from_millis(300)).build().unwrap();
    let server = Server::with([Step::Hang]).await;
    let error = client.post(server.url("/")).send().await.unwrap_err();
    assert!(
        matches!(error, Error::Uncertain { cause: UncertainCause::Lifetime, attempts: 1, .. }),
        "{error}"
    );
}
