//! Nested layers: one request is one operation.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::post;
use bytes::Bytes;
use hapax::core::{ManualClock, OnLapse, Query, State, Store, StoreErrorKind};
use hapax::http::{Dialect, EarlyData, HttpPolicy, IdempotencyLayer, OnStoreError};
use hapax::{Hapax, MemoryStore};
use hapax_testkit::{Fault, Faulty, Op, Plan, Point};
use http::{HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use tokio::sync::Semaphore;
use tower::ServiceExt as _;

use super::wire::in_time;

#[tokio::test]
async fn x_05_an_inner_layer_does_not_treat_its_own_request_as_a_duplicate() {
    for policy in [
        HttpPolicy::default(),
        HttpPolicy::default()
            .key_from(["header:idempotency-key", "json:/id"].map(|place| place.parse().unwrap())),
    ] {
        let hapax = Hapax::new(MemoryStore::new());
        let layer = || IdempotencyLayer::new(&hapax).policy(policy.clone());
        let runs = Arc::new(AtomicU32::new(0));
        let handler = {
            let runs = runs.clone();
            move || async move {
                let run = runs.fetch_add(1, Ordering::SeqCst) + 1;
                (StatusCode::SERVICE_UNAVAILABLE, [("Idempotency-Outcome", "pin")], run.to_string())
            }
        };
        let router: Router = Router::new().route("/", post(handler).layer(layer())).layer(layer());
        for is_replayed in [false, true] {
            let request = Request::post("/")
                .header("Idempotency-Key", "k")
                .header("Expect", "100-continue")
                .header("Content-Type", "application/json")
                .body(Body::from(r#"{"id": "k"}"#))
                .unwrap();
            let response = router.clone().oneshot(request).await.unwrap();
            assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
            assert_eq!(response.headers().contains_key("x-idempotent-replayed"), is_replayed);
            assert_eq!(response.headers().get("Idempotency-Outcome"), None);
            assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "1");
        }
        assert_eq!(runs.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test]
async fn d_03_an_inner_layer_passes_requests_that_the_outer_one_passes() {
    let store = Faulty::new(Arc::new(MemoryStore::new()));
    let hapax = Hapax::builder(store.clone()).build();
    let passing = || HttpPolicy::default().on_store_error(OnStoreError::Pass);
    let layer = || IdempotencyLayer::new(&hapax).policy(passing());
    let router: Router = Router::new().route("/", post(|| async { "done" }).layer(layer())).layer(layer());
    store.set_plan(Plan::new().always(Op::Claim, Fault::ErrorBefore(StoreErrorKind::Unavailable)));
    let request = Request::post("/").header("Idempotency-Key", "k").body(Body::empty()).unwrap();
    let response = router.oneshot(request).await.unwrap();
    assert_eq!(
        (response.status(), &response.headers()["Idempotency-Protected"]),
        (StatusCode::OK, &HeaderValue::from_static("false"))
    );
}

type Lines<'a> = &'a [(&'a str, &'a str)];

/// A layer that pins every response, around one with separate keys; each has its own store.
struct Nested {
    router: Router,
    outer: Arc<MemoryStore>,
    inner: Faulty,
    runs: Arc<AtomicU32>,
    go: Arc<Semaphore>,
}

impl Nested {
    /// The handler waits at `/slow`, panics at `/panics` and returns a long response at `/long`.
    fn new(policy: HttpPolicy) -> Self {
        Self::around(MemoryStore::new(), policy)
    }

    /// The same with this store for the inner layer.
    fn around(inner: MemoryStore, policy: HttpPolicy) -> Self {
        let (outer, inner) = (Arc::new(MemoryStore::new()), Faulty::new(Arc::new(inner)));
        let (runs, go) = (Arc::new(AtomicU32::new(0)), Arc::new(Semaphore::new(0)));
        let handler = |path: &'static str| {
            let (runs, go) = (runs.clone(), go.clone());
            move || async move {
                let run = runs.fetch_add(1, Ordering::SeqCst) + 1;
                match path {
                    "/slow" => go.acquire().await.unwrap().forget(),
                    "/panics" => panic!("a planned panic of a handler"),
                    _ => {}
                }
                format!("{run}{}", if path == "/long" { " and more" } else { "" })
            }
        };
        let around = HttpPolicy::of(Dialect::StripeV1)
            .early_data(EarlyData::Accept)
            .header(HeaderName::from_static("x-outer-key"));
        let mut router = Router::new();
        for path in ["/", "/slow", "/panics", "/long"] {
            router = router.route(path, post(handler(path)));
        }
        let within = IdempotencyLayer::new(Hapax::builder(inner.clone()).build());
        let around = IdempotencyLayer::new(Hapax::builder(outer.clone()).build()).policy(around);
        let router = router.layer(within.policy(policy)).layer(around);
        Self { router, outer, inner, runs, go }
    }

    async fn ask(&self, path: &str, outer: &str, headers: Lines<'_>) -> (StatusCode, Bytes) {
        let mut request = Request::post(path).header("X-Outer-Key", outer);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response =
            in_time(self.router.clone().oneshot(request.body(Body::empty()).unwrap())).await.unwrap();
        (response.status(), response.into_body().collect().await.unwrap().to_bytes())
    }

    async fn outer_states(&self) -> Vec<State> {
        let page = self.outer.list(&Query::default()).await.unwrap();
        page.records.iter().map(|record| record.state_at(page.now)).collect()
    }
}

const KEY: (&str, &str) = ("Idempotency-Key", "k");

#[tokio::test]
async fn x_05_a_conflict_of_an_inner_layer_is_not_stored_by_the_outer_one() {
    let nested = Nested::new(HttpPolicy::default());
    let router = nested.router.clone();
    let first = Request::post("/slow").header("X-Outer-Key", "a").header(KEY.0, KEY.1);
    let first = tokio::spawn(router.oneshot(first.body(Body::empty()).unwrap()));
    while nested.runs.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(nested.ask("/slow", "b", &[KEY]).await.0, StatusCode::CONFLICT);
    nested.go.add_permits(1);
    assert_eq!(in_time(first).await.unwrap().unwrap().status(), StatusCode::OK);
    assert_eq!(nested.ask("/slow", "b", &[KEY]).await, (StatusCode::OK, Bytes::from_static(b"1")));
    assert_eq!(nested.runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn x_05_a_refusal_of_an_inner_layer_releases_the_outer_key() {
    let down = Plan::new().always(Op::Claim, Fault::ErrorBefore(StoreErrorKind::Unavailable));
    let forbid = |policy: HttpPolicy| {
        policy.authorise(|parts| {
            let may = !parts.headers.contains_key("x-forbidden");
            let refusal = Response::builder().status(StatusCode::FORBIDDEN).body(Bytes::new()).unwrap();
            std::future::ready(if may { Ok(()) } else { Err(refusal) })
        })
    };
    let cases: [(HttpPolicy, Plan, Lines<'_>, u16); 4] = [
        (HttpPolicy::default(), down, &[KEY], 503),
        (HttpPolicy::default(), Plan::new(), &[("Idempotency-Key", "")], 400),
        (HttpPolicy::default(), Plan::new(), &[KEY, ("Early-Data", "1")], 425),
        (forbid(HttpPolicy::default()), Plan::new(), &[KEY, ("X-Forbidden", "1")], 403),
    ];
    for (policy, plan, headers, status) in cases {
        let nested = Nested::new(policy);
        nested.inner.set_plan(plan);
        assert_eq!(nested.ask("/", "a", headers).await.0, status);
        assert_eq!(nested.outer_states().await, [State::Released], "{status}");
        nested.inner.set_plan(Plan::new());
        assert_eq!(
            nested.ask("/", "a", &[KEY]).await,
            (StatusCode::OK, Bytes::from_static(b"1")),
            "{status}"
        );
    }
}

#[tokio::test]
async fn x_05_an_uncertain_inner_outcome_is_uncertain_in_the_outer_layer() {
    let nested = Nested::new(HttpPolicy::default());
    for (outer, status) in [("a", 500), ("b", 409), ("a", 409), ("b", 409)] {
        assert_eq!(nested.ask("/panics", outer, &[KEY]).await.0, status, "{outer}");
    }
    assert_eq!(nested.outer_states().await, [State::Uncertain; 2]);
    assert_eq!(nested.runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn x_05_a_superseded_inner_run_does_not_release_the_outer_key() {
    // So long that there is no renewal in between.
    const LEASE: Duration = Duration::from_secs(24 * 3600);
    let clock = ManualClock::new();
    let policy = HttpPolicy::default().lease(LEASE).on_lapse(OnLapse::Rerun);
    let nested = Arc::new(Nested::around(MemoryStore::with_clock(clock.clone()), policy));
    let ask = |outer: &'static str| {
        let nested = nested.clone();
        tokio::spawn(async move { nested.ask("/slow", outer, &[KEY]).await.0 })
    };
    let runs = async |count: u32| {
        while nested.runs.load(Ordering::SeqCst) < count {
            tokio::task::yield_now().await;
        }
    };
    let first = ask("a");
    runs(1).await;
    clock.advance(2 * LEASE);
    let second = ask("b");
    runs(2).await;
    // The first run waits in front.
    nested.go.add_permits(1);
    assert_eq!(in_time(first).await.unwrap(), StatusCode::BAD_GATEWAY);
    nested.go.add_permits(1);
    assert_eq!(in_time(second).await.unwrap(), StatusCode::OK);
    let mut states = nested.outer_states().await;
    states.sort_by_key(|state| *state == State::Uncertain);
    assert_eq!(states, [State::Completed, State::Uncertain]);
}

#[tokio::test]
async fn x_05_an_unavailable_inner_result_is_pinned_in_the_outer_layer() {
    let nested = Nested::new(HttpPolicy::default().outcome_bytes_max(4));
    assert_eq!(nested.ask("/long", "a", &[KEY]).await.0, StatusCode::OK);
    assert_eq!(nested.ask("/long", "b", &[KEY]).await.0, StatusCode::CONFLICT);
    let states = nested.outer_states().await;
    assert!(states.contains(&State::Completed) && states.contains(&State::Failed), "{states:?}");
    assert_eq!(nested.runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn x_09_an_inner_layer_passes_the_override_to_the_outer_one() {
    let outer = Hapax::new(MemoryStore::new());
    let around = HttpPolicy::default().header(HeaderName::from_static("x-outer-key"));
    for within in [
        HttpPolicy::default(),
        HttpPolicy::default()
            .key_from(["header:idempotency-key", "json:/id"].map(|place| place.parse().unwrap())),
    ] {
        let runs = Arc::new(AtomicU32::new(0));
        let handler = {
            let runs = runs.clone();
            move || async move {
                runs.fetch_add(1, Ordering::SeqCst);
                [("Idempotency-Outcome", "release")]
            }
        };
        let within = IdempotencyLayer::new(Hapax::new(MemoryStore::new())).policy(within);
        let around = IdempotencyLayer::new(&outer).policy(around.clone());
        let router: Router = Router::new().route("/", post(handler)).layer(within).layer(around);
        for run in 1..=2 {
            let request =
                Request::post("/").header("X-Outer-Key", "k").header("Content-Type", "application/json");
            let request = request.body(Body::from("{}")).unwrap();
            let response = router.clone().oneshot(request).await.unwrap();
            assert_eq!(response.headers().get("Idempotency-Outcome"), None);
            assert_eq!(runs.load(Ordering::SeqCst), run);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn x_08_a_deadline_during_an_inner_claim_releases_the_outer_key() {
    let nested = Nested::new(HttpPolicy::default().deadline(Duration::from_millis(50)));
    nested.inner.set_plan(Plan::new().at_nth(Op::Claim, 1, Fault::Stall(Point::Before)));
    assert_eq!(nested.ask("/", "a", &[KEY]).await.0, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(nested.outer_states().await, [State::Released]);
    assert_eq!(nested.runs.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn d_03_an_inner_layer_that_passes_leaves_the_context_of_the_outer_one() {
    let outer = Hapax::new(MemoryStore::new());
    let inner = Faulty::new(Arc::new(MemoryStore::new()));
    inner.set_plan(Plan::new().always(Op::Claim, Fault::ErrorBefore(StoreErrorKind::Unavailable)));
    let around = HttpPolicy::default().header(HeaderName::from_static("x-outer-key"));
    let within = HttpPolicy::default().on_store_error(OnStoreError::Pass);
    let within = IdempotencyLayer::new(Hapax::builder(inner).build()).policy(within);
    let handler = async |context: hapax::Context| context.attempt().to_string();
    let router: Router = Router::new()
        .route("/", post(handler))
        .layer(within)
        .layer(IdempotencyLayer::new(&outer).policy(around));
    let request = Request::post("/").header("X-Outer-Key", "a").header(KEY.0, KEY.1);
    let response = router.oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(response.headers()["Idempotency-Protected"], "false");
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "1");
}
