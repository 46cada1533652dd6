//! Limits count operations, not duplicate requests.

use hapax::http::{Endpoint, HttpPolicy};
use hapax_testkit::Op;

use super::service::{LONG, Service};
use super::wire::{Ask, Http1};

#[tokio::test]
async fn s_06_waiting_duplicates_are_not_open_claims() {
    let service = Service::new(HttpPolicy::default().open_claims_max(2).wait(LONG)).await;
    let slow = Ask::post("/slow").key("k");
    let mut first = service.begin(&slow).await;
    let mut duplicate = Http1::open(service.address).await;
    duplicate.send(&slow.wire()).await;
    service.stage.until(|seen| seen.applied(Op::Claim) == 3).await;
    service.ask(&Ask::post("/orders").key("k2")).await.assert_first(201, "order-2");
    service.stage.go();
    first.answer().await.assert_first(201, "order-1");
    duplicate.answer().await.assert_replay(201, "order-1");
}

#[tokio::test]
async fn s_01_another_endpoint_is_refused_even_if_only_the_key_counts() {
    let policy = HttpPolicy::default().endpoint(Endpoint::Fingerprint).fingerprint_key_only();
    let service = Service::new(policy).await;
    let ask = Ask::post("/orders").key("k").body("one");
    service.ask(&ask).await.assert_first(201, "order-1");
    service.ask(&ask.body("two")).await.assert_replay(201, "order-1");
    service.ask(&Ask::post("/panics").key("k")).await.assert_problem(422, "key-reused");
    service.ask(&Ask::new("PUT", "/orders").key("k")).await.assert_problem(422, "key-reused");
}
