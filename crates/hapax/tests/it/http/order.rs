//! The order of checks: of several faults, the one that is reported.

use hapax::http::{Anonymous, HttpPolicy, KeyMode};
use hapax_testkit::Op;

use super::service::Service;
use super::wire::Ask;

#[tokio::test]
async fn t_02_the_first_fault_in_the_order_of_checks_is_reported() {
    let policy = HttpPolicy::default().key(KeyMode::Required).anonymous(Anonymous::Refuse).body_bytes_max(8);
    let service = Service::new(policy).await;
    let running = Ask::post("/slow").key("k").by("a").body("an order");
    let mut first = service.begin(&running).await;
    let ask = || Ask::post("/slow");
    let (large, other) = ("more than eight bytes", "another");
    let cases = [
        ("key syntax", ask().body(large), 400, "key-missing"),
        ("key syntax", ask().key("").body(large), 400, "key-invalid"),
        ("principal", ask().key("k").body(large), 400, "principal-missing"),
        ("body limit", ask().key("k").by("a").body(large), 413, "too-large"),
        ("fingerprint", ask().key("k").by("a").body(other), 422, "key-reused"),
        ("claim", running.clone(), 409, "in-progress"),
    ];
    for (stage, ask, status, code) in cases {
        let answer = service.ask(&ask).await;
        assert_eq!(answer.status, status, "{stage}");
        answer.assert_problem(status, code);
    }
    assert_eq!((service.stage.runs(), service.stage.seen().called(Op::Claim)), (1, 3));
    service.stage.go();
    first.answer().await.assert_first(201, "order-1");
    service.ask(&ask().key("k").by("a").body(other)).await.assert_problem(422, "key-reused");
}
