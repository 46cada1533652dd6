//! Limits per key and per caller, if a route sets them.

use hapax::http::HttpPolicy;

use super::service::Service;
use super::wire::Ask;

#[tokio::test]
async fn s_06_a_key_sent_too_often_is_rate_limited() {
    let service = Service::new(HttpPolicy::default().attempts_per_key("2/1h".parse().unwrap())).await;
    let ask = Ask::post("/orders").key("k");
    service.ask(&ask).await.assert_first(201, "order-1");
    service.ask(&ask).await.assert_replay(201, "order-1");
    service.ask(&ask).await.assert_problem(429, "rate-limited");
    service.ask(&Ask::post("/orders").key("other")).await.assert_first(201, "order-2");
    service.ask(&ask.by("another")).await.assert_first(201, "order-3");
}

#[tokio::test]
async fn s_06_only_the_caller_with_many_open_claims_is_limited() {
    let service = Service::new(HttpPolicy::default().open_claims_max(1)).await;
    let mut running = service.begin(&Ask::post("/slow").key("k").by("a")).await;
    let second = Ask::post("/orders").key("k2");
    service.ask(&second.clone().by("a")).await.assert_problem(429, "rate-limited");
    service.ask(&second.clone().by("b")).await.assert_first(201, "order-2");
    service.ask(&second.clone()).await.assert_first(201, "order-3");
    // A disconnect does not free the slot: the operation continues.
    running.reopen().await;
    service.stage.until(|seen| seen.gone == 1).await;
    service.ask(&second.clone().by("a")).await.assert_problem(429, "rate-limited");
    service.stage.go();
    service.stage.until(|seen| seen.applied(hapax_testkit::Op::Complete) == 3).await;
    service.ask(&second.by("a")).await.assert_first(201, "order-4");
}

#[tokio::test]
async fn s_06_only_the_caller_with_much_stored_is_limited() {
    let service = Service::new(HttpPolicy::default().stored_bytes_max(1)).await;
    let first = Ask::post("/orders").key("k").by("a");
    service.ask(&first).await.assert_first(201, "order-1");
    service.ask(&Ask::post("/orders").key("k2").by("a")).await.assert_problem(429, "rate-limited");
    service.ask(&Ask::post("/orders").key("k2").by("b")).await.assert_first(201, "order-2");
}

#[tokio::test]
async fn s_06_limits_on_new_operations_do_not_affect_replays() {
    let policy = HttpPolicy::default().stored_bytes_max(1).open_claims_max(1);
    let service = Service::new(policy).await;
    let finished = Ask::post("/orders").key("k").by("a");
    service.ask(&finished).await.assert_first(201, "order-1");
    service.ask(&finished).await.assert_replay(201, "order-1");
    let running = Ask::post("/slow").key("k").by("b");
    let mut first = service.begin(&running).await;
    service.ask(&running).await.assert_problem(409, "in-progress");
    service.ask(&running.clone().body("another")).await.assert_problem(422, "key-reused");
    service.stage.go();
    first.answer().await.assert_first(201, "order-2");
    service.ask(&running).await.assert_replay(201, "order-2");
}
