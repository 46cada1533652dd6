//! Duplicates that wait for the first response: woken by notifications, bounded, with one poller for each key.

use std::time::Duration;

use futures_util::future::join_all;
use hapax::http::HttpPolicy;
use hapax_testkit::Op;
use tower::ServiceExt as _;

use super::service::{LONG, Service, Setup};
use super::wire::{Ask, Http1, Http2};

#[tokio::test]
async fn x_05_a_duplicate_is_refused_immediately_without_a_wait() {
    let service = Service::new(HttpPolicy::default()).await;
    let ask = Ask::post("/slow").key("k");
    let mut first = service.begin(&ask).await;
    service.ask(&ask).await.assert_problem(409, "in-progress");
    service.stage.go();
    first.answer().await.assert_first(201, "order-1");
    service.ask(&ask).await.assert_replay(201, "order-1");
}

#[tokio::test]
async fn x_05_a_waiting_duplicate_is_woken_without_polling() {
    let service = Service::start(Setup {
        policy: HttpPolicy::default().wait(LONG / 2),
        hapax: |builder| builder.poll(LONG),
        ..Setup::default()
    })
    .await;
    let ask = Ask::post("/slow").key("k");
    let mut first = service.begin(&ask).await;
    let mut duplicate = Http1::open(service.address).await;
    duplicate.send(&ask.wire()).await;
    // It claims, starts waiting and claims once more.
    service.stage.until(|seen| seen.applied(Op::Claim) == 3).await;
    service.stage.go();
    first.answer().await.assert_first(201, "order-1");
    duplicate.answer().await.assert_replay(201, "order-1");
    assert_eq!(service.stage.seen().called(Op::Get), 0);
}

#[tokio::test]
async fn x_05_a_thousand_duplicates_are_one_execution() {
    const DUPLICATES: usize = 1000;
    let service = Service::start(Setup {
        policy: HttpPolicy::default().wait(LONG),
        hapax: |builder| builder.poll(2 * LONG),
        ..Setup::default()
    })
    .await;
    let ask = Ask::post("/slow").key("k").body("an order");
    let mut first = service.begin(&ask).await;
    let connections = join_all((0..10).map(|_| Http2::open(service.address))).await;
    let duplicates = (0..DUPLICATES).map(|index| {
        let client = connections[index % connections.len()].clone();
        let ask = ask.clone();
        tokio::spawn(async move { client.ask(&ask).await })
    });
    let duplicates: Vec<_> = duplicates.collect();
    service.stage.until(|seen| seen.applied(Op::Claim) == 1 + 2 * DUPLICATES as u64).await;
    service.stage.go();
    first.answer().await.assert_first(201, "order-1");
    for duplicate in duplicates {
        duplicate.await.unwrap().assert_replay(201, "order-1");
    }
    assert_eq!((service.stage.runs(), service.stage.seen().called(Op::Get)), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn x_05_a_thousand_waiting_duplicates_share_one_poller() {
    // Without sockets: paused time does not wait for them.
    let service = Service::start(Setup {
        policy: HttpPolicy::default().wait(LONG),
        hapax: |builder| builder.poll(Duration::from_secs(1)),
        ..Setup::default()
    })
    .await;
    let ask = Ask::post("/slow").key("k");
    let send = || tokio::spawn(service.router.clone().oneshot(ask.request()));
    let first = send();
    service.stage.until(|seen| seen.runs == 1).await;
    let duplicates: Vec<_> = (0..1000).map(|_| send()).collect();
    service.stage.until(|seen| seen.applied(Op::Claim) == 2001).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let polls = service.stage.seen().called(Op::Get);
    assert!((9..=11).contains(&polls), "one poll per second, independent of the number of waiters: {polls}");
    service.stage.go();
    assert_eq!(first.await.unwrap().unwrap().status(), 201);
    for duplicate in duplicates {
        let response = duplicate.await.unwrap().unwrap();
        assert_eq!(response.headers()["x-idempotent-replayed"], "true");
    }
    assert_eq!(service.stage.runs(), 1);
}

#[tokio::test]
async fn x_05_waiters_beyond_the_limit_are_refused_immediately() {
    let service = Service::start(Setup {
        policy: HttpPolicy::default().wait(LONG),
        hapax: |builder| builder.waiters_max(1, 10),
        ..Setup::default()
    })
    .await;
    let ask = Ask::post("/slow").key("k");
    let mut first = service.begin(&ask).await;
    let mut waiter = Http1::open(service.address).await;
    waiter.send(&ask.wire()).await;
    service.stage.until(|seen| seen.applied(Op::Claim) == 3).await;
    service.ask(&ask).await.assert_problem(409, "in-progress");
    service.stage.go();
    first.answer().await.assert_first(201, "order-1");
    waiter.answer().await.assert_replay(201, "order-1");
}

#[tokio::test]
async fn x_05_a_waiter_runs_after_the_first_request_released_the_key() {
    let service = Service::new(
        HttpPolicy::default().wait(LONG).outcome("201".parse().unwrap(), hapax::http::Outcome::Release),
    )
    .await;
    let ask = Ask::post("/slow").key("k");
    let mut first = service.begin(&ask).await;
    let mut waiter = Http1::open(service.address).await;
    waiter.send(&ask.wire()).await;
    service.stage.until(|seen| seen.applied(Op::Claim) == 3).await;
    service.stage.go();
    service.stage.go();
    first.answer().await.assert_first(201, "order-1");
    waiter.answer().await.assert_first(201, "order-2");
}
