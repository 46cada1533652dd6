//! Axum handlers that extract the transaction of their request.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Path;
use axum::http::{Request, Response, StatusCode};
use axum::routing::post;
use hapax::Hapax;
use hapax::http::IdempotencyLayer;
use hapax_store_postgres::Tx;
use http_body_util::BodyExt;
use tower::ServiceExt;

use crate::shop::Shop;

/// Writes, and answers with this status.
async fn order(effect: Arc<str>, status: u16, tx: Tx) -> (StatusCode, String) {
    let row = tx.query_one(&*effect, &[]).await.unwrap();
    (StatusCode::from_u16(status).unwrap(), row.get::<_, i64>(0).to_string())
}

async fn ask(app: &Router, status: u16, key: Option<&str>) -> (StatusCode, String) {
    let mut request = Request::post(format!("/orders/{status}"));
    if let Some(key) = key {
        request = request.header("Idempotency-Key", key);
    }
    let response: Response<Body> = app.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.into()).unwrap())
}

#[tokio::test]
async fn writes_of_a_handler_and_its_response_are_committed_together() {
    let shop = Shop::open().await;
    let store = Arc::new(shop.options().connect().await.unwrap());
    let hapax = Hapax::builder(store.clone()).build();
    let effect: Arc<str> = shop.effect("order").into();
    let app = Router::new()
        .route("/orders/{status}", post(move |Path(status), tx: Tx| order(effect, status, tx)))
        .with_state(store)
        .layer(IdempotencyLayer::new(&hapax));

    let first = ask(&app, 201, Some("created")).await;
    assert_eq!((first.0, shop.effects("order")), (StatusCode::CREATED, 1));
    assert_eq!(ask(&app, 201, Some("created")).await, first);
    assert_eq!(shop.effects("order"), 1);

    // A 4xx response is recorded and a 5xx response is released; neither commits its writes.
    let refused = ask(&app, 422, Some("refused")).await;
    assert_eq!(ask(&app, 422, Some("refused")).await, refused);
    let failed = ask(&app, 500, Some("failed")).await;
    assert_ne!(ask(&app, 500, Some("failed")).await.1, failed.1);
    assert_eq!(shop.effects("order"), 1);

    // A transaction of another store would not be committed with the response.
    let other = Arc::new(shop.options().connect().await.unwrap());
    let wrong = Router::new()
        .route("/orders/{status}", post(|_: Tx| async { StatusCode::CREATED }))
        .with_state(other)
        .layer(IdempotencyLayer::new(&hapax));
    assert_eq!(ask(&wrong, 201, Some("wrong")).await.0, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(ask(&app, 201, Some("wrong")).await.0, StatusCode::CREATED);
    assert_eq!(shop.effects("order"), 2);

    // Without a key there is no attempt.
    assert_eq!(ask(&app, 201, None).await.0, StatusCode::BAD_REQUEST);
    assert_eq!(shop.effects("order"), 2);
}
