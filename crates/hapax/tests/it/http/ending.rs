//! How an execution ends other than by a response in time: a panic, a deadline, a shutdown.

use std::time::Duration;

use hapax::core::State as RecordState;
use hapax::http::HttpPolicy;
use hapax_testkit::Op;

use super::service::{LONG, Service};
use super::wire::{Ask, Http2};

#[tokio::test]
async fn x_07_a_panic_is_reported_immediately_and_never_run_again() {
    let service = Service::new(HttpPolicy::default()).await;
    let ask = Ask::post("/panics").key("k");
    service.ask(&ask).await.assert_problem(500, "uncertain");
    assert_eq!(service.states().await, [RecordState::Uncertain]);
    service.ask(&ask).await.assert_problem(409, "uncertain");
    Http2::open(service.address).await.ask(&ask).await.assert_problem(409, "uncertain");
    assert_eq!(service.stage.runs(), 1);
}

#[tokio::test]
async fn x_07_a_waiting_duplicate_is_refused_after_a_panic() {
    let service = Service::new(HttpPolicy::default().wait(LONG)).await;
    let client = Http2::open(service.address).await;
    let ask = Ask::post("/panics").key("k");
    let (first, second) = tokio::join!(client.ask(&ask), client.ask(&ask));
    let mut statuses = [first.status, second.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [409, 500]);
    assert_eq!(service.stage.runs(), 1);
}

#[tokio::test]
async fn x_08_at_its_deadline_a_client_is_refused_and_the_late_result_is_recorded() {
    let service = Service::new(HttpPolicy::default().deadline(Duration::from_millis(20))).await;
    let ask = Ask::post("/slow").key("k");
    service.ask(&ask).await.assert_problem(504, "in-progress");
    service.stage.until(|seen| seen.runs == 1).await;
    assert_eq!(service.states().await, [RecordState::InProgress], "the claim is kept until the handler ends");
    service.stage.go();
    service.stage.until(|seen| seen.applied(Op::Complete) == 1).await;
    service.ask(&ask).await.assert_replay(201, "order-1");
    assert_eq!(service.stage.runs(), 1);
}

#[tokio::test]
async fn x_13_a_draining_process_refuses_new_keys_and_completes_running_requests() {
    let service = Service::new(HttpPolicy::default()).await;
    let running = Ask::post("/slow").key("k");
    let mut first = service.begin(&running).await;
    let mut drain = std::pin::pin!(service.hapax.drain(LONG));
    assert!(futures_util::poll!(&mut drain).is_pending());

    service.ask(&Ask::post("/orders").key("k2")).await.assert_problem(503, "draining");
    service.ask(&running).await.assert_problem(503, "draining");
    service.ask(&Ask::post("/orders")).await.assert_first(201, "order-2");
    assert_eq!(service.states().await, [RecordState::InProgress]);

    service.stage.go();
    first.answer().await.assert_first(201, "order-1");
    assert_eq!(drain.await.left, 0);
    assert_eq!(service.states().await, [RecordState::Completed]);
}

#[tokio::test]
async fn x_13_a_request_completed_during_shutdown_is_replayed_by_the_next_process() {
    for is_patient in [true, false] {
        let mut service = Service::new(HttpPolicy::default()).await;
        let ask = Ask::post("/slow").key("k");
        let mut first = Some(service.begin(&ask).await).filter(|_| is_patient);
        if !is_patient {
            service.stage.until(|seen| seen.gone == 1).await;
        }
        service.shut_down();
        let hapax = service.hapax.clone();
        let mut drain = std::pin::pin!(hapax.drain(LONG));
        assert!(futures_util::poll!(&mut drain).is_pending());
        service.stage.go();
        if let Some(first) = &mut first {
            first.answer().await.assert_first(201, "order-1");
        }
        service.has_ended().await;
        assert_eq!(drain.await.left, 0);

        let next = service.successor().await;
        next.ask(&ask).await.assert_replay(201, "order-1");
        assert_eq!(next.stage.runs(), 1, "patient: {is_patient}");
    }
}
