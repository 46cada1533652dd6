//! C-01: one key and one request for all attempts.

use hapax_client::{Error, Key};
use http::{HeaderName, Method};

use crate::server::{Server, builder, client, problem, status};

#[tokio::test]
async fn c_01_the_key_and_the_body_are_the_same_on_every_attempt() {
    let server = Server::with([status(503), problem(409, "in-progress", &[]), status(201)]).await;
    let body = serde_json::json!({ "item": "book", "count": 2 });
    let call = client().post(server.url("/orders")).header("x-trace", "7").json(&body).build().unwrap();
    let key = call.key().unwrap().clone();

    let response = call.send().await.unwrap();
    assert_eq!((response.status().as_u16(), response.attempts()), (201, 3));
    assert_eq!(response.key(), Some(&key));
    let seen = server.seen();
    assert_eq!(seen[0].key(), Some(format!("\"{}\"", key.as_str()).as_str()));
    assert_eq!(seen[0].body, serde_json::to_vec(&body).unwrap());
    assert_eq!(seen[0].field("content-type"), Some("application/json"));
    assert_eq!((&seen[1], &seen[2]), (&seen[0], &seen[0]));
}

#[tokio::test]
async fn c_01_each_call_has_a_key_of_its_own() {
    let server = Server::with([status(200), status(200)]).await;
    for _ in 0..2 {
        client().patch(server.url("/orders/1")).send().await.unwrap();
    }
    let seen = server.seen();
    assert_ne!(seen[0].key(), seen[1].key());
    assert!(seen.iter().all(|request| request.key().is_some()));
}

#[tokio::test]
async fn c_01_a_key_of_the_caller_is_used() {
    let server = Server::with([status(200)]).await;
    let key = Key::new("order \"7\" \\ 1").unwrap();
    client().put(server.url("/orders/7")).key(key.clone()).send().await.unwrap();
    assert_eq!(server.seen()[0].key(), Some(r#""order \"7\" \\ 1""#));
    assert_eq!(Key::parse(server.seen()[0].key().unwrap().as_bytes()).unwrap(), key);
}

#[tokio::test]
async fn c_01_a_key_in_the_fields_of_the_caller_is_never_overwritten() {
    let server = Server::with([status(503), status(200)]).await;
    let call = client().post(server.url("/")).header("Idempotency-Key", "order-7").build().unwrap();
    assert_eq!(call.key(), Some(&Key::new("order-7").unwrap()));
    call.send().await.unwrap();
    let keys: Vec<Option<String>> = server.seen().iter().map(|seen| seen.key().map(str::to_owned)).collect();
    assert_eq!(keys, [Some("order-7".to_owned()), Some("order-7".to_owned())]);
}

#[tokio::test]
async fn c_01_two_different_keys_are_refused_before_anything_is_sent() {
    let server = Server::with([]).await;
    let call = client().post(server.url("/")).header("Idempotency-Key", "a").key(Key::new("b").unwrap());
    assert!(matches!(call.send().await, Err(Error::Request(_))));
    let call = client().post(server.url("/")).header("Idempotency-Key", "");
    assert!(matches!(call.send().await, Err(Error::Request(_))));
    assert_eq!(server.count(), 0);
}

#[tokio::test]
async fn c_01_other_methods_have_a_key_by_choice() {
    let server = Server::with([status(200), status(200), status(200)]).await;
    client().get(server.url("/")).send().await.unwrap();
    client().delete(server.url("/")).send().await.unwrap();
    let keyed = builder().keyed(Method::DELETE).build().unwrap();
    keyed.delete(server.url("/")).send().await.unwrap();
    let has_key: Vec<bool> = server.seen().iter().map(|seen| seen.key().is_some()).collect();
    assert_eq!(has_key, [false, false, true]);
}

#[tokio::test]
async fn c_01_the_field_of_the_key_can_be_chosen() {
    let server = Server::with([status(200)]).await;
    let name = HeaderName::from_static("paypal-request-id");
    let client = builder().key_header(name).build().unwrap();
    client.post(server.url("/")).key(Key::new("a").unwrap()).send().await.unwrap();
    assert_eq!(server.seen()[0].field("paypal-request-id"), Some("\"a\""));
    assert_eq!(server.seen()[0].key(), None);
}
