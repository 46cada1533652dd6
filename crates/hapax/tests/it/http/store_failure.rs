//! A failing store: nothing runs without a claim, and what ran is answered and never run again.

use axum::Router;
use axum::routing::any;
use bytes::Bytes;
use hapax::core::{State as RecordState, StoreErrorKind};
use hapax::http::{HttpPolicy, OnStoreError};
use hapax_testkit::{Fault, Op, Plan};

use super::service::{Service, Setup};
use super::wire::Ask;

const DOWN: Fault = Fault::ErrorBefore(StoreErrorKind::Unavailable);

#[tokio::test]
async fn d_03_without_a_claim_nothing_runs() {
    let service = Service::new(HttpPolicy::default()).await;
    let ask = Ask::post("/orders").key("k");
    for fault in [DOWN, Fault::ErrorBefore(StoreErrorKind::Full)] {
        service.faulty.set_plan(Plan::new().always(Op::Claim, fault));
        service.ask(&ask).await.assert_problem(503, "store-unavailable");
    }
    assert_eq!(service.stage.runs(), 0);
    service.ask(&Ask::post("/orders")).await.assert_first(201, "order-1");
    service.faulty.set_plan(Plan::new());
    service.ask(&ask).await.assert_first(201, "order-2");
}

#[tokio::test]
async fn d_03_a_request_runs_unprotected_and_marked_if_configured() {
    let service = Service::start(Setup {
        policy: HttpPolicy::default().on_store_error(OnStoreError::Pass),
        routes: || Router::new().route("/echo", any(|body: Bytes| async { body })),
        ..Setup::default()
    })
    .await;
    let ask = Ask::post("/echo").key("k").body("an order");
    service.faulty.set_plan(Plan::new().always(Op::Claim, DOWN));
    for _ in 0..2 {
        let answer = service.ask(&ask).await;
        answer.assert_first(200, "an order");
        assert_eq!(answer.header("Idempotency-Protected"), Some("false"));
    }
    service.faulty.set_plan(Plan::new());
    let protected = service.ask(&ask).await;
    protected.assert_first(200, "an order");
    assert_eq!(protected.header("Idempotency-Protected"), None);
    service.ask(&ask).await.assert_replay(200, "an order");
}

#[tokio::test]
async fn d_04_an_unrecorded_response_is_sent_marked_and_never_run_again() {
    let service = Service::new(HttpPolicy::default().on_store_error(OnStoreError::Pass)).await;
    let ask = Ask::post("/orders").key("k");
    service.faulty.set_plan(Plan::new().always(Op::Complete, DOWN));
    let first = service.ask(&ask).await;
    first.assert_first(201, "order-1");
    assert_eq!(first.header("Idempotency-Recorded"), Some("false"));
    for _ in 0..3 {
        service.ask(&ask).await.assert_problem(409, "in-progress");
    }
    service.faulty.set_plan(Plan::new());
    service.stage.until(|seen| seen.applied(Op::Complete) == 1).await;
    let replay = service.ask(&ask).await;
    replay.assert_replay(201, "order-1");
    assert_eq!(replay.header("Idempotency-Recorded"), None);
    assert_eq!((service.stage.runs(), service.states().await), (1, vec![RecordState::Completed]));
}

#[tokio::test]
async fn d_05_lost_replies_of_the_store_change_nothing() {
    for op in [Op::Claim, Op::Complete] {
        let service = Service::new(HttpPolicy::default()).await;
        service.faulty.set_plan(Plan::new().at_nth(op, 1, Fault::AnswerLost));
        let ask = Ask::post("/orders").key("k");
        let first = service.ask(&ask).await;
        first.assert_first(201, "order-1");
        assert_eq!(first.header("Idempotency-Recorded"), None, "{op}");
        service.ask(&ask).await.assert_replay(201, "order-1");
        assert_eq!(service.stage.runs(), 1, "{op}");
    }
}
