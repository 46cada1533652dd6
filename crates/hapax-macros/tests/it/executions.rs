//! Executions: duplicates, panics, dropped callers, nesting, durations.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hapax::core::{ManualClock, Reason};
use hapax::{Hapax, MemoryStore, OnceError, idempotent};
use tokio::sync::Notify;

use crate::World;

#[derive(Clone)]
struct Slow {
    world: World,
    began: Arc<Notify>,
    finish: Arc<Notify>,
}

impl Slow {
    fn new() -> Self {
        Self { world: World::new(), began: Arc::default(), finish: Arc::default() }
    }

    async fn work(&self) -> u32 {
        let count = self.world.happen();
        self.began.notify_one();
        self.finish.notified().await;
        count
    }
}

#[idempotent(key = "{id}", engine = slow.world.hapax, skip(slow), wait = "1m")]
async fn waiting(slow: &Slow, id: u32) -> u32 {
    slow.work().await
}

#[idempotent(key = "{id}", engine = slow.world.hapax, skip(slow))]
async fn impatient(slow: &Slow, id: u32) -> u32 {
    slow.work().await
}

#[idempotent(key = "{id}", engine = slow.world.hapax, skip(slow), deadline = "20ms", lease = "30s", on_lapse = rerun)]
async fn bounded(slow: &Slow, id: u32) -> u32 {
    slow.work().await
}

#[tokio::test]
async fn a_duplicate_waits_for_the_first_result() {
    let slow = Slow::new();
    let first = tokio::spawn({
        let slow = slow.clone();
        async move { waiting(&slow, 1).await }
    });
    slow.began.notified().await;
    let second = tokio::spawn({
        let slow = slow.clone();
        async move { waiting(&slow, 1).await }
    });
    tokio::task::yield_now().await;
    slow.finish.notify_one();
    assert_eq!(first.await.unwrap().unwrap(), 1);
    assert_eq!(second.await.unwrap().unwrap(), 1);
    assert_eq!(slow.world.count(), 1);
}

#[tokio::test]
async fn a_duplicate_that_does_not_wait_is_refused() {
    let slow = Slow::new();
    let first = tokio::spawn({
        let slow = slow.clone();
        async move { impatient(&slow, 1).await }
    });
    slow.began.notified().await;
    assert!(matches!(impatient(&slow, 1).await, Err(OnceError::InProgress { .. })));
    slow.finish.notify_one();
    first.await.unwrap().unwrap();
}

#[tokio::test]
async fn an_execution_outlives_its_caller() {
    let slow = Slow::new();
    {
        let borrowed = slow.clone();
        let mut call = Box::pin(impatient(&borrowed, 1));
        tokio::select! {
            biased;
            _ = &mut call => panic!("it waits for the test"),
            () = slow.began.notified() => {}
        }
    }
    slow.finish.notify_one();
    let replayed = loop {
        match impatient(&slow, 1).await {
            Err(OnceError::InProgress { .. }) => tokio::task::yield_now().await,
            ended => break ended,
        }
    };
    assert_eq!((replayed.unwrap(), slow.world.count()), (1, 1));
}

#[tokio::test]
async fn a_deadline_bounds_the_wait_of_the_caller() {
    let slow = Slow::new();
    assert!(matches!(bounded(&slow, 1).await, Err(OnceError::Deadline { .. })));
    assert_eq!(slow.world.count(), 1);
}

#[tokio::test]
async fn a_panic_is_uncertain_and_nothing_runs_again() {
    #[idempotent(key = "{id}", engine = world.hapax, skip(world))]
    async fn broken(world: World, id: u32) -> u32 {
        world.happen();
        assert!(id > 10, "a defect");
        id
    }
    let world = World::new();
    for _ in 0..2 {
        let broken = broken(world.clone(), 1).await;
        assert!(matches!(broken, Err(OnceError::Uncertain { reason: Reason::Panicked, .. })));
    }
    assert_eq!(world.count(), 1);
}

#[tokio::test]
async fn after_its_retention_a_key_is_fresh() {
    #[idempotent(key = "{id}", engine = world.hapax, skip(world), retention = "1h")]
    async fn forgotten(world: World, id: u32) -> u32 {
        let _ = id;
        world.happen()
    }
    let clock = ManualClock::new();
    let world = World::over(MemoryStore::with_clock(clock.clone()));
    assert_eq!(forgotten(world.clone(), 1).await.unwrap(), 1);
    clock.advance(Duration::from_secs(3599));
    assert_eq!(forgotten(world.clone(), 1).await.unwrap(), 1);
    clock.advance(Duration::from_secs(2));
    assert_eq!(forgotten(world.clone(), 1).await.unwrap(), 2);
}

#[tokio::test]
async fn nested_calls_are_operations_of_their_own() {
    #[idempotent(key = "{id}", engine = world.hapax, skip(world))]
    async fn inner(world: &World, id: u32) -> u32 {
        let _ = id;
        world.happen()
    }

    #[idempotent(key = "{id}", engine = world.hapax, skip(world))]
    async fn outer(world: &World, id: u32) -> Result<(u32, u32), String> {
        let one = inner(world, id).await.map_err(|error| error.to_string())?;
        let two = inner(world, id + 1).await.map_err(|error| error.to_string())?;
        Ok((one, two))
    }

    let world = World::new();
    assert_eq!(outer(&world, 1).await.unwrap(), (1, 2));
    assert_eq!(inner(&world, 2).await.unwrap(), 2);
    assert_eq!(outer(&world, 1).await.unwrap(), (1, 2));
    assert_eq!(world.count(), 2);
}

type Counted = Result<Vec<u32>, OnceError<String>>;

fn boxed<'a>(hapax: &'a Hapax, from: u32) -> Pin<Box<dyn Future<Output = Counted> + Send + 'a>> {
    Box::pin(countdown(hapax, from))
}

#[idempotent(engine = hapax)]
async fn countdown(hapax: &Hapax, from: u32) -> Result<Vec<u32>, String> {
    let mut counted = vec![from];
    if from > 0 {
        counted.extend(boxed(hapax, from - 1).await.map_err(|error| error.to_string())?);
    }
    Ok(counted)
}

#[tokio::test]
async fn recursive_calls_are_operations_of_their_own() {
    let hapax = World::new().hapax;
    assert_eq!(countdown(&hapax, 3).await.unwrap(), [3, 2, 1, 0]);
    assert_eq!(hapax.store().stats().await.unwrap().completed, 4);
}
