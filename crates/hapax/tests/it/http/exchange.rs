//! The exchange without a tower service, and the engine without HTTP: what becomes of a record when the host drops what
//! it was given, fails, or executes by itself.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hapax::core::{Class, Fingerprint, Format, Lookup, OnLapse, Reason, Recorded, State, Status, Store};
use hapax::engine::{Claimed, Execution, Finish, Operation, Refusal};
use hapax::http::exchange::{Entry, Running, Step};
use hapax::http::{HttpPolicy, IdempotencyLayer, OnStoreError, RequestBody, ResponseBody};
use hapax::{Hapax, Keeper, Key, MemoryStore, Policy, Scope};
use hapax_testkit::{Fault, Faulty, Op, Plan, Point, TokioClock};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use tokio::sync::watch;

type Body = Full<Bytes>;

const SECOND: Duration = Duration::from_secs(1);

struct World {
    hapax: Hapax,
    faulty: Faulty,
    applied: watch::Receiver<Vec<Op>>,
    layer: IdempotencyLayer,
}

impl World {
    fn new() -> Self {
        let faulty = Faulty::new(Arc::new(MemoryStore::with_clock(TokioClock::new())));
        let (sender, applied) = watch::channel(Vec::new());
        faulty.observe(move |call| {
            if call.point == Point::After {
                sender.send_modify(|ops| ops.push(call.op));
            }
        });
        let builder = Hapax::builder(faulty.clone()).keeper(Keeper::SharedRuntime).sweep(None).cache(0);
        let hapax = builder.build();
        Self { layer: IdempotencyLayer::new(&hapax), hapax, faulty, applied }
    }

    /// Sends the one request of these tests as far as its handler.
    async fn step(&self) -> Step<Body, Body> {
        let request =
            Request::post("/payments").header("Idempotency-Key", "k").body(Body::from("{}")).unwrap();
        let Entry::Covered(exchange) = self.layer.exchange(&request) else { panic!("it has a key") };
        exchange.enter(request).await
    }

    async fn begin(&self) -> (Request<RequestBody<Body>>, Box<Running>) {
        match self.step().await {
            Step::Run(request, running) => (request, running),
            other => panic!("the request does not run: {other:?}"),
        }
    }

    async fn answer(&self) -> Response<ResponseBody<Body>> {
        match self.step().await {
            Step::Answer(response) => response,
            other => panic!("the request is not answered: {other:?}"),
        }
    }

    /// Waits until the store has applied this call, and returns the state of the only record.
    async fn state_after(&self, op: Op) -> (State, Option<Reason>) {
        self.applied.clone().wait_for(|ops| ops.contains(&op)).await.unwrap();
        let page = self.faulty.list(&hapax::core::Query::default()).await.unwrap();
        let [record] = &page.records[..] else { panic!("{} records", page.records.len()) };
        let reason = match record.status {
            Status::Uncertain { reason } => Some(reason),
            _ => None,
        };
        (record.state_at(page.now), reason)
    }

    fn operation(key: &str) -> Operation {
        Operation::new(Scope::new("lines"), &Key::new(key).unwrap(), Policy::default())
    }
}

fn recorded(text: &'static str) -> Recorded {
    Recorded::new(Class::Success, Format(200), text)
}

async fn text(response: Response<ResponseBody<Body>>) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn x_01_a_host_that_executes_by_itself_records_the_response() {
    let world = World::new();
    let (request, running) = world.begin().await;
    assert_eq!(request.into_body().collect().await.unwrap().to_bytes(), "{}");
    let answer = running.finish(Response::new(Body::from("paid"))).await;
    assert_eq!(text(answer).await, "paid");
    let replay = world.answer().await;
    assert_eq!(replay.headers()["x-idempotent-replayed"], "true");
    assert_eq!(text(replay).await, "paid");
}

#[tokio::test(start_paused = true)]
async fn x_07_a_running_request_that_is_dropped_is_uncertain() {
    let world = World::new();
    drop(world.begin().await);
    assert_eq!(world.state_after(Op::Abandon).await, (State::Uncertain, Some(Reason::NoAnswer)));
    assert_eq!(world.answer().await.status(), StatusCode::CONFLICT);
}

#[tokio::test(start_paused = true)]
async fn x_07_a_running_request_without_a_response_is_uncertain() {
    let world = World::new();
    world.begin().await.1.fail().await;
    assert_eq!(world.state_after(Op::Abandon).await, (State::Uncertain, Some(Reason::NoAnswer)));
}

#[tokio::test(start_paused = true)]
async fn x_06_recording_goes_on_when_the_host_drops_it() {
    let world = World::new();
    let (_, running) = world.begin().await;
    world.faulty.set_plan(Plan::new().at_nth(Op::Complete, 1, Fault::Stall(Point::Before)));
    let mut finish = Box::pin(running.finish(Response::new(Body::from("paid"))));
    assert!(futures_util::poll!(&mut finish).is_pending());
    drop(finish);
    world.faulty.resume();
    assert_eq!(world.state_after(Op::Complete).await.0, State::Completed);
}

#[tokio::test(start_paused = true)]
async fn d_05_a_claim_whose_caller_leaves_is_cancelled() {
    let world = World::new();
    world.faulty.set_plan(Plan::new().at_nth(Op::Claim, 1, Fault::Stall(Point::After)));
    let mut claim = Box::pin(world.hapax.claim(World::operation("k")));
    assert!(futures_util::poll!(&mut claim).is_pending());
    drop(claim);
    assert_eq!(world.state_after(Op::Release).await.0, State::Released);
    let again = world.hapax.claim(World::operation("k")).await;
    assert!(matches!(again, Ok(Claimed::Run(_))), "{again:?}");
}

#[tokio::test(start_paused = true)]
async fn x_01_a_permit_records_bytes_and_a_retry_gets_them() {
    let world = World::new();
    let Ok(Claimed::Run(permit)) = world.hapax.claim(World::operation("k")).await else {
        panic!("it is new")
    };
    let refused = world.hapax.claim(World::operation("k")).await;
    assert!(matches!(refused, Err(Refusal::InProgress { .. })), "{refused:?}");
    let execution = permit.finish(Finish::Pin(recorded("paid"))).await;
    assert!(matches!(execution, Ok(Execution::Ran { recorded: true, .. })), "{execution:?}");
    let replay = world.hapax.claim(World::operation("k")).await;
    assert!(matches!(&replay, Ok(Claimed::Replay(outcome)) if *outcome == recorded("paid")), "{replay:?}");
}

#[tokio::test(start_paused = true)]
async fn x_01_an_operation_that_is_released_runs_again() {
    let world = World::new();
    let Ok(Claimed::Run(permit)) = world.hapax.claim(World::operation("k")).await else {
        panic!("it is new")
    };
    permit.finish(Finish::Release(None)).await.unwrap();
    let Ok(Claimed::Run(permit)) = world.hapax.claim(World::operation("k")).await else {
        panic!("it is free")
    };
    assert_eq!(permit.context().attempt(), 2);
    permit.finish(Finish::Release(None)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn x_07_a_permit_that_is_dropped_leaves_its_record_uncertain() {
    let world = World::new();
    drop(world.hapax.claim(World::operation("k")).await);
    assert_eq!(world.state_after(Op::Abandon).await, (State::Uncertain, Some(Reason::NoAnswer)));
    let found = world.hapax.get("lines", "k").await;
    assert!(matches!(found, Ok(Lookup::Found { .. })), "{found:?}");
}

#[tokio::test]
async fn x_07_a_permit_that_is_dropped_outside_of_the_runtime_leaves_its_record_uncertain() {
    let world = World::new();
    let claimed = world.hapax.claim(World::operation("k")).await;
    std::thread::spawn(move || drop(claimed)).join().unwrap();
    assert_eq!(world.state_after(Op::Abandon).await, (State::Uncertain, Some(Reason::NoAnswer)));
}

#[tokio::test(start_paused = true)]
async fn d_05_a_cancelled_takeover_leaves_its_record_uncertain() {
    let world = World::new();
    let operation = |text: &str| {
        let policy = Policy::default().on_lapse(OnLapse::Rerun).attempts_max(3);
        let operation = Operation::new(Scope::new("lines"), &Key::new("k").unwrap(), policy);
        operation.fingerprint(Fingerprint::builder().part("line", text.as_bytes()).build())
    };
    let crashed = Faulty::new(Arc::new(world.faulty.clone()));
    let hapax = Hapax::builder(crashed.clone()).keeper(Keeper::SharedRuntime).sweep(None).build();
    let _lost = hapax.claim(operation("a")).await;
    crashed.crash();
    tokio::time::advance(Duration::from_secs(3600)).await;
    world.faulty.set_plan(Plan::new().at_nth(Op::Claim, 1, Fault::Stall(Point::After)));
    let takeover = tokio::spawn({
        let (hapax, operation) = (world.hapax.clone(), operation("a"));
        async move { hapax.claim(operation).await }
    });
    let claims = |ops: &Vec<Op>| ops.iter().filter(|op| **op == Op::Claim).count();
    world.applied.clone().wait_for(|ops| claims(ops) == 2).await.unwrap();
    takeover.abort();
    assert_eq!(world.state_after(Op::Abandon).await, (State::Uncertain, Some(Reason::Lapsed)));
    let other = world.hapax.claim(operation("b")).await;
    assert!(matches!(other, Err(Refusal::Mismatch)), "{other:?}");
    // Attempts that never ran count: two of three are used.
    let Ok(Claimed::Run(permit)) = world.hapax.claim(operation("a")).await else { panic!("it may run") };
    assert_eq!(permit.context().attempt(), 3);
    permit.finish(Finish::Pin(recorded("paid"))).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn x_08_a_response_that_the_host_has_is_answered_after_the_deadline() {
    let world = World::new();
    let layer = IdempotencyLayer::new(&world.hapax).policy(HttpPolicy::default().deadline(SECOND));
    let world = World { layer, ..world };
    let (_, running) = world.begin().await;
    tokio::time::advance(2 * SECOND).await;
    world.faulty.set_plan(Plan::new().at_nth(Op::Complete, 1, Fault::Delay(Point::Before, SECOND / 100)));
    let answer = running.finish(Response::new(Body::from("paid"))).await;
    assert_eq!((answer.status(), text(answer).await.as_str()), (StatusCode::OK, "paid"));
}

#[tokio::test(start_paused = true)]
async fn s_06_a_step_shows_no_header_of_its_request() {
    let world = World::new();
    for step in [world.step().await, world.step().await] {
        let shown = format!("{step:?}");
        assert!(shown.starts_with("Run") || shown.starts_with("Answer"), "{shown}");
        assert!(!shown.to_lowercase().contains("idempotency-key"), "{shown}");
    }
}

#[tokio::test(start_paused = true)]
async fn d_03_an_operation_that_ends_while_its_duplicate_is_claimed_does_not_pass() {
    let world = World::new();
    let builder = Hapax::builder(world.faulty.clone()).keeper(Keeper::SharedRuntime).sweep(None);
    let hapax = builder.cache(1 << 20).build();
    let policy = HttpPolicy::default().on_store_error(OnStoreError::Pass);
    let world = World { layer: IdempotencyLayer::new(&hapax).policy(policy), hapax, ..world };
    let (_, running) = world.begin().await;
    world.faulty.set_plan(Plan::new().always(Op::Claim, Fault::Stall(Point::Before)));
    let mut duplicate = Box::pin(world.answer());
    assert!(futures_util::poll!(&mut duplicate).is_pending());
    running.finish(Response::new(Body::from("paid"))).await;
    let replay = duplicate.await;
    assert_eq!(replay.headers()["x-idempotent-replayed"], "true");
    assert_eq!(text(replay).await, "paid");
}
