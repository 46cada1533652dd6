//! The same rules inside of a client of `reqwest_middleware`.

use std::io;
use std::time::Duration;

use hapax_client::{Client, Error, Key, Limit, RetryMiddleware};
use http::Extensions;
use reqwest::{Request, Response};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Next};

use crate::server::{Server, Step, answer, builder, problem, quick, refusing_url, status};

fn middleware() -> RetryMiddleware {
    Client::builder().retry(quick()).deadline(Duration::from_secs(20)).build_middleware().unwrap()
}

fn client() -> ClientWithMiddleware {
    let http = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
    ClientBuilder::new(http.build().unwrap()).with(middleware()).build()
}

fn inner(error: reqwest_middleware::Error) -> Error {
    match error {
        reqwest_middleware::Error::Middleware(error) => error.downcast().unwrap(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn c_01_a_middleware_sends_one_key_on_every_attempt() {
    let script = [status(503), Step::CloseRead, problem(409, "in-progress", &[]), answer(201, &[], "made")];
    let server = Server::with(script).await;
    let response = client().post(server.url("/")).body("book").send().await.unwrap();
    let key = response.extensions().get::<Key>().unwrap().clone();
    assert_eq!(response.text().await.unwrap(), "made");
    let seen = server.seen();
    assert_eq!(seen[0].key(), Some(format!("\"{}\"", key.as_str()).as_str()));
    assert!(seen.len() == 4 && seen.iter().all(|request| *request == seen[0]));
}

#[tokio::test]
async fn c_01_a_middleware_keeps_the_key_of_the_request() {
    let server = Server::with([status(503), status(200)]).await;
    client().put(server.url("/")).header("idempotency-key", "mine").send().await.unwrap();
    assert!(server.count() == 2 && server.seen().iter().all(|request| request.key() == Some("mine")));
}

#[tokio::test]
async fn c_02_a_middleware_ends_with_the_typed_error() {
    let server = Server::with([problem(409, "uncertain", &[]), status(503)]).await;
    let error = inner(client().post(server.url("/")).send().await.unwrap_err());
    assert!(matches!(error, Error::Uncertain { key: Some(_), .. }), "{error}");

    let body = reqwest::Body::wrap(http_body_util::Full::new(bytes::Bytes::from_static(b"x")));
    let error = inner(client().post(server.url("/")).body(body).send().await.unwrap_err());
    assert!(matches!(error, Error::Exhausted { limit: Limit::OneShotBody, .. }), "{error}");
}

type Answer<'a> = std::pin::Pin<Box<dyn Future<Output = reqwest_middleware::Result<Response>> + Send + 'a>>;

/// Loses every answer.
fn lossy<'a>(request: Request, extensions: &'a mut Extensions, next: Next<'a>) -> Answer<'a> {
    Box::pin(async move {
        next.run(request, extensions).await?;
        Err(reqwest_middleware::Error::middleware(io::Error::other("lost")))
    })
}

#[tokio::test]
async fn c_04_a_failure_of_another_middleware_may_hide_an_effect() {
    let server = Server::with([status(200), status(200), status(200)]).await;
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let client = ClientBuilder::new(http).with(middleware()).with(lossy).build();
    let error = inner(client.post(server.url("/")).send().await.unwrap_err());
    assert!(matches!(error, Error::Uncertain { key: Some(_), attempts: 3, .. }), "{error}");
    assert!(server.seen().iter().all(|request| request.key() == server.seen()[0].key()));
}

/// An inner client that follows redirects, which a correct set-up does not.
#[tokio::test]
async fn c_04_a_redirect_that_cannot_be_followed_is_no_request_that_was_not_sent() {
    let made = answer(303, &[("location", "ftp://files.example/receipt")], "");
    let server = Server::with([made.clone(), made.clone(), made]).await;
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let client = ClientBuilder::new(http).with(middleware()).build();
    let error = inner(client.post(server.url("/")).send().await.unwrap_err());
    assert!(matches!(error, Error::Uncertain { key: Some(_), attempts: 3, .. }), "{error}");

    let error = inner(client.post("ftp://files.example/orders").send().await.unwrap_err());
    assert!(matches!(error, Error::Request(_)), "{error}");
}

/// Sends the request, and then fails to connect to a service of its own.
fn reporting<'a>(request: Request, extensions: &'a mut Extensions, next: Next<'a>) -> Answer<'a> {
    Box::pin(async move {
        next.run(request, extensions).await?;
        let own = reqwest::Client::new().get(refusing_url().await).send().await;
        Err(own.unwrap_err().into())
    })
}

#[tokio::test]
async fn c_02_a_middleware_that_cannot_connect_is_no_request_that_was_not_sent() {
    let server = Server::with([status(200)]).await;
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let client = ClientBuilder::new(http).with(middleware()).with(reporting).build();
    let error = inner(client.put(server.url("/")).send().await.unwrap_err());
    assert!(matches!(error, Error::Uncertain { key: None, attempts: 1, .. }), "{error}");
    assert_eq!(server.count(), 1);
}

#[test]
fn a_middleware_refuses_what_it_would_not_use() {
    let directory = tempfile::TempDir::new().unwrap();
    let journal = format!("file:{}", directory.path().display());
    for unused in [Client::builder().journal(journal), builder()] {
        let error = unused.build_middleware().unwrap_err();
        assert!(matches!(error, Error::Request(_)), "{error:?}");
    }
}
