//! Authorisation is checked before every claim and every replay.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use hapax::core::State as RecordState;
use hapax::http::{Anonymous, HttpPolicy};
use hapax_testkit::Op;
use http::Response;

use super::service::Service;
use super::wire::{Ask, WireResponse};

/// A service that authorises every request that does not state that it lost its access, and the number of checks.
async fn guarded() -> (Service, Arc<AtomicU32>) {
    let checks = Arc::new(AtomicU32::new(0));
    let policy = {
        let checks = checks.clone();
        HttpPolicy::default().authorise(move |parts| {
            checks.fetch_add(1, Ordering::SeqCst);
            let may = !parts.headers.contains_key("x-access-lost");
            let refusal = Response::builder().status(403).header("x-why", "no access");
            let refusal = refusal.body(Bytes::from_static(b"ask your administrator")).unwrap();
            std::future::ready(if may { Ok(()) } else { Err(refusal) })
        })
    };
    (Service::new(policy).await, checks)
}

fn ask() -> Ask {
    Ask::post("/orders").key("k")
}

#[track_caller]
fn assert_refused(answer: &WireResponse) {
    assert_eq!((answer.status, answer.text()), (403, "ask your administrator"), "{answer:?}");
    assert_eq!(answer.header("x-why"), Some("no access"));
    assert!(!answer.is_replayed());
}

#[tokio::test]
async fn s_04_authorisation_is_checked_for_every_retry() {
    let (service, checks) = guarded().await;
    service.ask(&ask()).await.assert_first(201, "order-1");
    service.ask(&ask()).await.assert_replay(201, "order-1");
    assert_eq!((service.stage.runs(), checks.load(Ordering::SeqCst)), (1, 2));
}

#[tokio::test]
async fn s_04_an_unauthorised_caller_claims_nothing() {
    let (service, _) = guarded().await;
    assert_refused(&service.ask(&ask().header("X-Access-Lost", "1")).await);
    assert_eq!((service.stage.runs(), service.stage.seen().called(Op::Claim)), (0, 0));
    service.ask(&ask()).await.assert_first(201, "order-1");
}

#[tokio::test]
async fn s_04_a_caller_that_lost_access_gets_no_replay_and_the_record_stays() {
    let (service, _) = guarded().await;
    service.ask(&ask()).await.assert_first(201, "order-1");
    assert_refused(&service.ask(&ask().header("X-Access-Lost", "1")).await);
    assert_eq!(service.states().await, [RecordState::Completed]);
    service.ask(&ask()).await.assert_replay(201, "order-1");
    assert_eq!(service.stage.runs(), 1);
}

/// A service whose callers are named by their current tokens: `NAME/TOKEN`.
async fn naming() -> Service {
    let policy = HttpPolicy::default().authorise_as(|parts| {
        let token = parts.headers.get("authorization").and_then(|value| value.to_str().ok());
        let name = token.and_then(|token| token.split_once('/')).map(|(name, _)| name.to_owned());
        let refusal = Response::builder().status(401).body(Bytes::new()).unwrap();
        std::future::ready(name.ok_or(refusal))
    });
    Service::new(policy).await
}

#[tokio::test]
async fn s_02_a_named_caller_is_the_same_with_a_renewed_token() {
    let service = naming().await;
    service.ask(&ask().by("alice/t1")).await.assert_first(201, "order-1");
    service.ask(&ask().by("alice/t2")).await.assert_replay(201, "order-1");
    service.ask(&ask().by("bob/t2")).await.assert_first(201, "order-2");
    // No other header matters.
    service.ask(&ask().by("alice/t3").header("X-Api-Key", "k")).await.assert_replay(201, "order-1");
    assert_eq!(service.stage.runs(), 2);
}

#[tokio::test]
async fn s_02_an_authorised_caller_without_a_name_claims_nothing() {
    let service = naming().await;
    service.ask(&ask().by("/t1")).await.assert_problem(400, "principal-missing");
    assert_eq!((service.stage.runs(), service.stage.seen().called(Op::Claim)), (0, 0));
}

#[tokio::test]
async fn s_04_authorisation_is_refused_before_a_missing_principal() {
    let policy = HttpPolicy::default().anonymous(Anonymous::Refuse).authorise(|parts| {
        let may = parts.headers.contains_key("x-may");
        let refusal = Response::builder().status(401).body(Bytes::new()).unwrap();
        std::future::ready(if may { Ok(()) } else { Err(refusal) })
    });
    let service = Service::new(policy).await;
    assert_eq!(service.ask(&ask()).await.status, 401);
    service.ask(&ask().header("X-May", "1")).await.assert_problem(400, "principal-missing");
}

#[tokio::test]
async fn s_04_requests_that_pass_unchanged_are_not_checked() {
    let (service, checks) = guarded().await;
    for untouched in [Ask::post("/orders"), Ask::new("GET", "/orders").key("k")] {
        assert_eq!(service.ask(&untouched.header("X-Access-Lost", "1")).await.status, 201);
    }
    assert_eq!(checks.load(Ordering::SeqCst), 0);
}
