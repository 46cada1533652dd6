//! A function in AWS Lambda: nothing runs after its response, so its record is complete before.

use std::path::Path;

use axum::routing::post;
use bytes::Bytes;
use hapax::Hapax;
use hapax::http::IdempotencyLayer;
use hapax_store_file::FileStore;
use http::Request;

use super::lambda_api::{LambdaApi, http_event, is_function};

/// The function of the example.
#[path = "../../../examples/lambda_order/function.rs"]
mod example;

/// The directory of the function's records and of its log of effects.
const FOLDER: &str = "HAPAX_TEST_FOLDER";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_lambda_the_record_is_complete_before_the_function_returns() {
    if is_function() {
        return create_orders().await;
    }
    let folder = tempfile::tempdir().unwrap();
    let effects = folder.path().join("effects");
    let variables = [(FOLDER, folder.path().to_str().unwrap())];
    let test = "http_surfaces::lambda::in_lambda_the_record_is_complete_before_the_function_returns";
    let api = LambdaApi::start().await;
    let order = |key: &str| {
        let request = Request::post("/orders").header("idempotency-key", key);
        http_event(&request.body(Bytes::from_static(b"book")).unwrap())
    };

    for (round, key) in [(1, "a"), (2, "b"), (3, "c")] {
        let mut function = api.function(test, &variables);
        let first = api.queue(order(key)).response().await;
        function.kill();
        assert_eq!(first.status(), 201);
        assert_eq!(first.headers().get("x-idempotent-replayed"), None);

        let _another = api.function(test, &variables);
        let again = api.queue(order(key)).response().await;
        assert_eq!(again.headers()["x-idempotent-replayed"], "true");
        assert_eq!((again.status(), again.body()), (first.status(), first.body()));
        assert_eq!(std::fs::read_to_string(&effects).unwrap().lines().count(), round);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_lambda_the_example_creates_an_order_once() {
    if is_function() {
        return lambda_http::run(example::app().unwrap()).await.unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let variables = [("ORDERS_DATA", folder.path().to_str().unwrap())];
    let test = "http_surfaces::lambda::in_lambda_the_example_creates_an_order_once";
    let api = LambdaApi::start().await;
    let order = |key: &str, item: &str| {
        let request = Request::post("/orders").header("idempotency-key", key);
        let request = request.header("content-type", "application/json");
        http_event(&request.body(Bytes::from(format!("{{\"item\":\"{item}\"}}"))).unwrap())
    };
    let mut function = api.function(test, &variables);
    let first = api.queue(order("a", "book")).response().await;
    assert_eq!(first.status(), 201);
    assert_eq!(first.headers().get("x-idempotent-replayed"), None);
    assert_eq!(serde_json::from_slice::<serde_json::Value>(first.body()).unwrap()["number"], 1);
    function.kill();

    let _another = api.function(test, &variables);
    let again = api.queue(order("a", "book")).response().await;
    assert_eq!(again.headers()["x-idempotent-replayed"], "true");
    assert_eq!((again.status(), again.body()), (first.status(), first.body()));
    assert_eq!(api.queue(order("a", "yacht")).response().await.status(), 422);
}

/// The function: one line in a file for each order.
async fn create_orders() {
    let folder = std::env::var_os(FOLDER).unwrap();
    let folder = Path::new(&folder);
    let effects = folder.join("effects");
    let create = move |item: String| async move {
        use std::io::Write as _;
        let file = std::fs::File::options().create(true).append(true).open(effects);
        writeln!(file.unwrap(), "{item}").unwrap();
        (http::StatusCode::CREATED, format!("created by {}", std::process::id()))
    };
    let hapax = Hapax::new(FileStore::open(folder.join("records")).unwrap());
    let app = axum::Router::new().route("/orders", post(create)).layer(IdempotencyLayer::new(&hapax));
    lambda_http::run(app).await.unwrap();
}
