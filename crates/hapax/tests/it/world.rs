//! Shared by the tests: an engine over a store with injected failures, a counter of effects, simulated time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hapax::core::{Deleted, Lookup, Settled, State, Store, Verdict};
use hapax::{Builder, Done, Hapax, Keeper, MemoryStore, OnceError, Policy};
use hapax_testkit::{Faulty, TokioClock};
use tokio::sync::Notify;

pub(crate) const LEASE: Duration = Duration::from_secs(30);

/// One process on its own store, or on that of another one.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) hapax: Hapax,
    pub(crate) faulty: Faulty,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) effects: Arc<Effects>,
}

/// Counts the effects.
#[derive(Default)]
pub(crate) struct Effects(AtomicU32);

impl Effects {
    pub(crate) fn happen(&self) -> u32 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    pub(crate) fn count(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }
}

pub(crate) type ChargeResult = Result<Done<u32>, OnceError<String>>;

impl World {
    /// The defaults, in the runtime's own (usually paused) time, but without a cache: the tests count store calls.
    pub(crate) fn new() -> Self {
        Self::with(|builder| builder)
    }

    pub(crate) fn with(set_up: impl FnOnce(Builder) -> Builder) -> Self {
        Self::over(Arc::new(MemoryStore::with_clock(TokioClock::new())), set_up)
    }

    pub(crate) fn over(store: Arc<dyn Store>, set_up: impl FnOnce(Builder) -> Builder) -> Self {
        let faulty = Faulty::new(store.clone());
        let builder = Hapax::builder(faulty.clone()).keeper(Keeper::SharedRuntime).sweep(None).cache(0);
        Self { hapax: set_up(builder).build(), faulty, store, effects: Arc::default() }
    }

    /// Another process on the same store, with the same counter of effects.
    pub(crate) fn second(&self) -> Self {
        self.second_with(|builder| builder)
    }

    pub(crate) fn second_with(&self, set_up: impl FnOnce(Builder) -> Builder) -> Self {
        Self { effects: self.effects.clone(), ..Self::over(self.store.clone(), set_up) }
    }

    /// Runs one operation whose only effect is to be counted; its value is the count.
    pub(crate) async fn charge(&self, key: &str) -> ChargeResult {
        self.charge_with(key, |policy| policy).await
    }

    pub(crate) async fn charge_with(&self, key: &str, adapt: impl FnOnce(Policy) -> Policy) -> ChargeResult {
        let effects = self.effects.clone();
        self.hapax
            .once("charge", key)
            .policy(adapt(Policy::default()))
            .run(move |_cx| async move { Ok::<_, String>(effects.happen()) })
            .await
    }

    /// Starts an operation that performs its effect, notifies the test, and waits for [`Slow::finish`].
    pub(crate) async fn start_slow(&self, key: &str, adapt: impl FnOnce(Policy) -> Policy) -> Slow {
        let (began, finish) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let effects = self.effects.clone();
        let run = {
            let (began, finish) = (began.clone(), finish.clone());
            self.hapax.once("charge", key).policy(adapt(Policy::default())).run(move |_cx| async move {
                let value = effects.happen();
                began.notify_one();
                finish.notified().await;
                Ok::<_, String>(value)
            })
        };
        let caller = tokio::spawn(run);
        began.notified().await;
        Slow { caller, finish }
    }

    /// Settles the record of `key`.
    pub(crate) async fn settle(&self, key: &str, verdict: Verdict) -> Settled {
        match self.hapax.get("charge", key).await.unwrap() {
            Lookup::Found { record, .. } => self.hapax.settle(&record, verdict).await.unwrap(),
            _ => Settled::Absent,
        }
    }

    /// Deletes the record of `key`.
    pub(crate) async fn delete(&self, key: &str) -> Deleted {
        match self.hapax.get("charge", key).await.unwrap() {
            Lookup::Found { record, .. } => self.hapax.delete(&record).await.unwrap(),
            _ => Deleted::Absent,
        }
    }

    pub(crate) async fn state(&self, key: &str) -> Option<State> {
        match self.hapax.get("charge", key).await.unwrap() {
            Lookup::Found { record, now } => Some(record.state_at(now)),
            _ => None,
        }
    }
}

/// An operation that is running.
pub(crate) struct Slow {
    pub(crate) caller: tokio::task::JoinHandle<ChargeResult>,
    finish: Arc<Notify>,
}

impl Slow {
    /// Lets the work end.
    pub(crate) fn finish(&self) {
        self.finish.notify_one();
    }

    /// Lets the work end and returns its result.
    pub(crate) async fn answer(self) -> ChargeResult {
        self.finish();
        self.caller.await.unwrap()
    }
}

/// Runs all tasks that are ready, without advancing time.
pub(crate) async fn settle_down() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}
