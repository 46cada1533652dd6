//! A route that lets requests pass while the store is down does not run operations that are known to run or to have
//! run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use bytes::Bytes;
use hapax::core::{Store, StoreErrorKind};
use hapax::http::{HttpPolicy, OnStoreError};
use hapax::{ExpiredKeys, MemoryStore, Policy, Reconciled};
use hapax_testkit::{Fault, Op, Plan};
use http::{Request, Response};
use http_body_util::Full;
use tower::ServiceExt as _;

use super::service::{LONG, Service, Setup, Stage};
use super::wire::{Ask, Http1};

const DOWN: Fault = Fault::ErrorBefore(StoreErrorKind::Unavailable);

fn passing() -> HttpPolicy {
    HttpPolicy::default().on_store_error(OnStoreError::Pass)
}

#[tokio::test]
async fn d_03_a_reconciled_operation_does_not_pass_if_it_cannot_be_settled() {
    let policy = passing().reconcile(|_question| async {
        Reconciled::Applied(Response::new(Bytes::from_static(b"it happened")))
    });
    let service = Service::new(policy).await;
    let ask = Ask::post("/panics").key("k");
    service.ask(&ask).await.assert_problem(500, "uncertain");
    service.faulty.set_plan(Plan::new().always(Op::Settle, DOWN));
    service.ask(&ask).await.assert_problem(503, "store-unavailable");
    assert_eq!(service.stage.runs(), 1);
    service.faulty.set_plan(Plan::new());
    service.ask(&ask).await.assert_replay(200, "it happened");
    assert_eq!(service.stage.runs(), 1);
}

#[tokio::test]
async fn d_03_a_duplicate_of_a_known_running_request_does_not_pass() {
    let service = Service::new(passing().wait(LONG)).await;
    let ask = Ask::post("/slow").key("k");
    let mut first = service.begin(&ask).await;
    let mut duplicate = Http1::open(service.address).await;
    duplicate.send(&ask.wire()).await;
    service.stage.until(|seen| seen.applied(Op::Claim) == 3).await;
    service.faulty.set_plan(Plan::new().always(Op::Claim, DOWN));
    // If the duplicate did run, it would complete.
    service.stage.go();
    service.stage.go();
    first.answer().await.assert_first(201, "order-1");
    duplicate.answer().await.assert_problem(503, "store-unavailable");
    assert_eq!(service.stage.runs(), 1);
}

#[tokio::test]
async fn d_03_a_recorded_operation_does_not_pass_over_a_limit() {
    let service = Service::new(passing().open_claims_max(1)).await;
    let ask = Ask::post("/orders").key("k");
    service.ask(&ask).await.assert_first(201, "order-1");
    let mut running = service.begin(&Ask::post("/slow").key("other")).await;
    // The limit is reached, so the record is looked up before the claim.
    service.faulty.set_plan(Plan::new().always(Op::Claim, DOWN));
    service.ask(&ask).await.assert_problem(503, "store-unavailable");
    assert_eq!(service.stage.runs(), 2);
    service.stage.go();
    running.answer().await.assert_first(201, "order-2");
}

#[tokio::test]
async fn d_03_a_recorded_operation_under_an_old_key_does_not_pass() {
    // A version 7 UUID of the year 2020.
    let ask = Ask::post("/orders").key("017f0000-0000-7000-8000-000000000001");
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let before = Service::start_on(store.clone(), Setup::default()).await;
    before.ask(&ask).await.assert_first(201, "order-1");
    let policy = passing().engine(Policy::default().expired_keys(ExpiredKeys::Refuse));
    let service = Service::start_on(store, Setup { policy, ..Setup::default() }).await;
    service.faulty.set_plan(Plan::new().always(Op::Claim, DOWN));
    service.ask(&ask).await.assert_problem(503, "store-unavailable");
    assert_eq!(service.stage.runs(), 0);
}

#[tokio::test]
async fn s_06_a_passed_request_counts_until_it_ends() {
    let service = Service::new(passing().open_claims_max(1)).await;
    service.faulty.set_plan(Plan::new().always(Op::Claim, DOWN));
    drop(service.begin(&Ask::post("/slow").key("k")).await);
    service.stage.until(|seen| seen.gone == 1).await;
    service.ask(&Ask::post("/orders").key("other")).await.assert_problem(429, "rate-limited");
    assert_eq!(service.stage.runs(), 1);
    service.stage.go();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d_03_one_of_several_concurrent_duplicates_passes() {
    const TOGETHER: u32 = 8;
    let service = Service::new(passing()).await;
    service.faulty.set_plan(Plan::new().always(Op::Claim, DOWN));
    let ask = Ask::post("/slow").key("k");
    let mut clients = Vec::new();
    for _ in 0..TOGETHER {
        let mut client = Http1::open(service.address).await;
        client.send(&ask.wire()).await;
        clients.push(client);
    }
    // The one that runs is waiting, so the others are all that can have been answered.
    service.stage.until(|seen| seen.left == TOGETHER - 1).await;
    assert_eq!(service.stage.runs(), 1);
    service.stage.go();
    let mut passed = 0;
    for mut client in clients {
        let answer = client.answer().await;
        match answer.header("Idempotency-Protected") {
            Some(_) => passed += 1,
            None => answer.assert_problem(503, "store-unavailable"),
        }
    }
    assert_eq!((passed, service.stage.runs()), (1, 1));
    service.stage.go();
    assert_eq!(service.ask(&ask).await.body, b"order-2", "nothing was recorded, and nothing is running");
}

#[tokio::test]
async fn d_03_a_passed_request_does_not_run_twice_when_the_store_recovers() {
    let service = Service::new(passing()).await;
    service.faulty.set_plan(Plan::new().always(Op::Claim, DOWN));
    let ask = Ask::post("/slow").key("k");
    let mut first = service.begin(&ask).await;
    service.faulty.set_plan(Plan::new());
    service.ask(&ask).await.assert_problem(409, "in-progress");
    service.stage.go();
    assert_eq!(first.answer().await.header("Idempotency-Protected"), Some("false"));
    assert_eq!(service.stage.runs(), 1);
    service.stage.go();
    service.ask(&ask).await.assert_first(201, "order-2");
}

#[tokio::test]
async fn d_03_a_disconnect_does_not_cancel_a_passed_request() {
    async fn in_two_steps(State(stage): State<Arc<Stage>>) {
        stage.run();
        stage.rest().await;
        stage.run();
    }
    let routes = || Router::new().route("/steps", post(in_two_steps));
    let service = Service::start(Setup { policy: passing(), routes, ..Setup::default() }).await;
    service.faulty.set_plan(Plan::new().always(Op::Claim, DOWN));
    drop(service.begin(&Ask::post("/steps").key("k")).await);
    service.stage.until(|seen| seen.gone == 1).await;
    service.stage.go();
    service.stage.until(|seen| seen.runs == 2).await;
}

#[tokio::test]
async fn d_03_a_panic_of_a_passed_request_is_answered_and_marked() {
    let service = Service::new(passing()).await;
    service.faulty.set_plan(Plan::new().always(Op::Claim, DOWN));
    let answer = service.ask(&Ask::post("/panics").key("k")).await;
    answer.assert_problem(500, "uncertain");
    assert_eq!(answer.header("Idempotency-Protected"), Some("false"));
    service.ask(&Ask::post("/panics").key("k")).await.assert_problem(500, "uncertain");
    assert_eq!(service.stage.runs(), 2, "the end of the first run was detected");
}

#[tokio::test]
async fn d_04_a_request_that_ran_unrecorded_does_not_pass() {
    let service = Service::new(passing()).await;
    let ask = Ask::post("/orders").key("k");
    service.faulty.set_plan(Plan::new().always(Op::Complete, DOWN));
    let first = service.ask(&ask).await;
    first.assert_first(201, "order-1");
    assert_eq!(first.header("Idempotency-Recorded"), Some("false"));
    service.faulty.set_plan(Plan::new().always(Op::Complete, DOWN).always(Op::Claim, DOWN));
    service.ask(&ask).await.assert_problem(503, "store-unavailable");
    let other = service.ask(&Ask::post("/orders").key("other")).await;
    assert_eq!((other.status, other.header("Idempotency-Protected")), (201, Some("false")));
    service.faulty.set_plan(Plan::new());
    service.stage.until(|seen| seen.applied(Op::Complete) == 1).await;
    service.ask(&ask).await.assert_replay(201, "order-1");
}

#[tokio::test]
async fn d_03_the_body_is_not_buffered_while_its_handler_runs() {
    struct Tracked(Arc<AtomicBool>);
    impl AsRef<[u8]> for Tracked {
        fn as_ref(&self) -> &[u8] {
            b"a large body"
        }
    }
    impl Drop for Tracked {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    async fn digest(State(stage): State<Arc<Stage>>, body: Bytes) {
        drop(body);
        stage.run();
        stage.rest().await;
    }
    let routes = || Router::new().route("/digest", post(digest));
    let service = Service::start(Setup { policy: passing(), routes, ..Setup::default() }).await;
    let is_gone = Arc::new(AtomicBool::new(false));
    let body = Full::new(Bytes::from_owner(Tracked(is_gone.clone())));
    let request = Request::post("/digest").header("Idempotency-Key", "k").body(body).unwrap();
    let answer = tokio::spawn(service.router.clone().oneshot(request));
    service.stage.until(|seen| seen.runs == 1).await;
    assert!(is_gone.load(Ordering::SeqCst));
    service.stage.go();
    assert_eq!(answer.await.unwrap().unwrap().status(), 200);
}

#[tokio::test]
async fn d_03_the_override_is_removed_from_a_passed_response() {
    let service = Service::start(Setup {
        policy: passing()
            .key_from(["header:idempotency-key", "json:/id"].map(|place| place.parse().unwrap())),
        routes: || Router::new().route("/said", post(|| async { [("Idempotency-Outcome", "pin")] })),
        ..Setup::default()
    })
    .await;
    service.faulty.set_plan(Plan::new().always(Op::Claim, DOWN));
    let (keyed, unkeyed) = (Ask::post("/said").key("k"), Ask::post("/said"));
    for (ask, protected) in [(keyed, Some("false")), (unkeyed, None)] {
        let answer = service.ask(&ask).await;
        assert_eq!((answer.status, answer.header("Idempotency-Protected")), (200, protected), "{ask:?}");
        assert_eq!(answer.header("Idempotency-Outcome"), None, "{ask:?}");
    }
}
