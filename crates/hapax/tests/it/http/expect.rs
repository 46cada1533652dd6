//! `Expect: 100-continue`: a body that will not be read is not requested.

use hapax::Policy;
use hapax::core::OnLapse;
use hapax::http::{HttpPolicy, KeyMode};

use super::service::Service;
use super::wire::{Ask, Http1, WireResponse};

fn asking(path: &str) -> Ask {
    Ask::post(path).header("Expect", "100-continue").body("an order")
}

/// The first response, before the body is sent.
async fn first_word(service: &Service, ask: &Ask) -> (Http1, WireResponse) {
    let mut client = Http1::open(service.address).await;
    client.send(&ask.head()).await;
    let answer = client.answer().await;
    (client, answer)
}

#[tokio::test]
async fn t_01_a_missing_or_invalid_key_is_refused_without_requesting_the_body() {
    let service = Service::new(HttpPolicy::default().key(KeyMode::Required)).await;
    let cases = [
        (asking("/orders"), "key-missing"),
        (asking("/orders").header("Idempotency-Key", "\"\""), "key-invalid"),
        (asking("/orders").key("a").key("b"), "key-invalid"),
    ];
    for (ask, code) in cases {
        first_word(&service, &ask).await.1.assert_problem(400, code);
    }
    assert_eq!((service.stage.runs(), service.states().await.len()), (0, 0));
}

#[tokio::test]
async fn t_01_a_body_announced_as_too_large_is_not_requested() {
    let service = Service::new(HttpPolicy::default().body_bytes_max(4)).await;
    first_word(&service, &asking("/orders").key("k")).await.1.assert_problem(413, "too-large");
    assert_eq!((service.stage.runs(), service.states().await.len()), (0, 0));
}

#[tokio::test]
async fn t_01_a_known_conflict_is_refused_without_requesting_the_body() {
    let service = Service::new(HttpPolicy::default()).await;
    let mut running = service.begin(&Ask::post("/slow").key("k").body("an order")).await;
    first_word(&service, &asking("/slow").key("k")).await.1.assert_problem(409, "in-progress");
    service.stage.go();
    running.answer().await.assert_first(201, "order-1");

    service.ask(&Ask::post("/panics").key("k").body("an order")).await.assert_problem(500, "uncertain");
    first_word(&service, &asking("/panics").key("k")).await.1.assert_problem(409, "uncertain");
    assert_eq!(service.stage.runs(), 2);
}

#[tokio::test]
async fn x_04_t_01_the_body_of_a_request_that_may_run_again_is_requested() {
    let rerun = Policy::default().on_lapse(OnLapse::Rerun).attempts_max(2);
    let service = Service::new(HttpPolicy::default().engine(rerun)).await;
    let ask = Ask::post("/panics").key("k").body("an order");
    service.ask(&ask).await.assert_problem(500, "uncertain");
    let (mut client, word) = first_word(&service, &asking("/panics").key("k")).await;
    assert_eq!(word.status, 100);
    client.send(b"an order").await;
    client.answer().await.assert_problem(500, "uncertain");
    first_word(&service, &asking("/panics").key("k")).await.1.assert_problem(409, "uncertain");
    assert_eq!(service.stage.runs(), 2, "the last attempt has run");
}

#[tokio::test]
async fn t_01_the_body_is_requested_for_a_valid_key() {
    let service = Service::new(HttpPolicy::default()).await;
    for is_replay in [false, true] {
        let (mut client, word) = first_word(&service, &asking("/orders").key("k")).await;
        assert_eq!((word.status, service.stage.runs()), (100, u32::from(is_replay)));
        client.send(b"an order").await;
        let answer = client.answer().await;
        assert_eq!((answer.status, answer.text(), answer.is_replayed()), (201, "order-1", is_replay));
    }
    assert_eq!(service.stage.runs(), 1);
}
