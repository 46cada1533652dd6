//! Equal keys of different callers, and on different endpoints, are separate.

use std::sync::Arc;

use axum::Router;
use axum::routing::any;
use hapax::http::{HttpPolicy, IdempotencyLayer};
use hapax::{Hapax, MemoryStore};

use super::service::{Service, Setup, Stage, order};
use super::wire::Ask;

#[tokio::test]
async fn s_05_equal_keys_of_different_callers_are_separate() {
    let service = Service::new(HttpPolicy::default()).await;
    let callers = ["Bearer a", "Bearer b", "bearer a", ""];
    let ask = |caller: &str| match caller {
        "" => Ask::post("/orders").key("k").body("an order"),
        _ => Ask::post("/orders").key("k").body("an order").by(caller),
    };
    for (caller, run) in callers.iter().zip(1..) {
        service.ask(&ask(caller)).await.assert_first(201, format!("order-{run}"));
    }
    for (caller, run) in callers.iter().zip(1..) {
        service.ask(&ask(caller)).await.assert_replay(201, format!("order-{run}"));
    }
    // Not even a conflict reveals another caller.
    let with_other_body = |caller: &str| Ask::post("/orders").key("k").body("another").by(caller);
    service.ask(&with_other_body("Bearer a")).await.assert_problem(422, "key-reused");
    service.ask(&with_other_body("Bearer c")).await.assert_first(201, "order-5");
}

#[tokio::test]
async fn s_05_a_running_operation_of_one_caller_does_not_block_another() {
    let service = Service::new(HttpPolicy::default()).await;
    let mut first = service.begin(&Ask::post("/slow").key("k").by("a")).await;
    let mut second = service.begin(&Ask::post("/slow").key("k").by("b")).await;
    service.stage.go();
    service.stage.go();
    first.answer().await.assert_first(201, "order-1");
    second.answer().await.assert_first(201, "order-2");
}

#[tokio::test]
async fn s_01_one_key_on_two_endpoints_is_two_operations() {
    fn nested() -> Router<Arc<Stage>> {
        // Inside of the nesting, where the inner path of the requests is the same for both.
        let hapax = Hapax::new(MemoryStore::new());
        let inner = Router::new().route("/orders", any(order)).layer(IdempotencyLayer::new(&hapax));
        Router::new().nest("/v1", inner.clone()).nest("/v2", inner)
    }
    // The outer layer is off: the inner ones are tested.
    let policy = HttpPolicy::default().key(hapax::http::KeyMode::Off);
    let service = Service::start(Setup { policy, routes: nested, ..Setup::default() }).await;
    let asks = [
        Ask::post("/v1/orders").key("k"),
        Ask::post("/v2/orders").key("k"),
        Ask::new("PUT", "/v1/orders").key("k"),
    ];
    for (ask, run) in asks.iter().zip(1..) {
        service.ask(ask).await.assert_first(201, format!("order-{run}"));
    }
    for (ask, run) in asks.iter().zip(1..) {
        service.ask(ask).await.assert_replay(201, format!("order-{run}"));
    }
    assert_eq!(service.stage.runs(), 3);
}
