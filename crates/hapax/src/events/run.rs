//! [`Run`]: everything that a source delivers, until a shutdown.

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinError, JoinSet};
use tokio::time::timeout;

use super::consumer::Consumer;
use super::handle::Stay;
use super::router::Router;
use super::source::{Delivery, Source};

/// How long running handlers have after a shutdown, by default.
const DRAIN_MAX: Duration = Duration::from_secs(30);

/// A consumer, its source and its router, made by [`Consumer::run`].
#[must_use = "nothing happens until `until` is called and awaited"]
pub struct Run<S, T> {
    consumer: Consumer,
    source: S,
    router: Router<T>,
    drain_max: Duration,
}

/// Why a run did not end well.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RunError {
    /// Handlers were still running when the time for the drain was over. Their deliveries are neither acknowledged nor
    /// given back, so the broker delivers them again; what they record until the process ends is recorded.
    Undrained {
        /// How many.
        left: usize,
    },
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Undrained { left } => write!(f, "{left} handlers were still running when the drain ended"),
        }
    }
}

impl std::error::Error for RunError {}

impl Consumer {
    /// Processes everything that `source` delivers, by the handlers of `router`, until a shutdown.
    ///
    /// ```no_run
    /// # async fn example(source: impl hapax::events::Source, router: hapax::events::Router<()>) -> Result<(), hapax::events::RunError> {
    /// use hapax::events::Consumer;
    /// use hapax::{Hapax, MemoryStore};
    ///
    /// let hapax = Hapax::new(MemoryStore::new());
    /// let shutdown = async { /* a signal */ };
    /// Consumer::new(&hapax, "billing").run(source, router).until(shutdown).await
    /// # }
    /// ```
    pub fn run<S: Source, T: Clone + Send + Sync + 'static>(
        &self,
        source: S,
        router: Router<T>,
    ) -> Run<S, T> {
        Run { consumer: self.clone(), source, router, drain_max: DRAIN_MAX }
    }
}

impl<S: Source, T: Clone + Send + Sync + 'static> Run<S, T> {
    /// How long running handlers have to end after the shutdown. Default 30 s.
    pub fn drain_max(mut self, drain_max: Duration) -> Self {
        self.drain_max = drain_max;
        self
    }

    /// Runs until `shutdown` completes or the source is closed.
    ///
    /// After the shutdown no more is taken from the source. Running handlers end and are recorded and acknowledged; what is
    /// held, or waits for its turn, is given back. When the source is closed, everything in hand is processed to its end,
    /// retries included.
    ///
    /// # Errors
    /// [`RunError::Undrained`] when handlers do not end in time.
    pub async fn until(self, shutdown: impl Future<Output = ()>) -> Result<(), RunError> {
        let Self { consumer, mut source, router, drain_max } = self;
        report_horizon(&consumer, source.horizon());
        let stay = Stay { stop: consumer.shared.stop.child_token(), until: None };
        let (consumer, router) = (Arc::new(consumer), Arc::new(router));
        let mut shutdown = pin!(shutdown);
        let mut in_hand = JoinSet::new();
        loop {
            while let Some(ended) = in_hand.try_join_next() {
                report_panic(&consumer, ended);
            }
            let next = async {
                // In this order: a delivery that is taken before there is room for it ages meanwhile.
                let room = consumer.shared.room_in_hand().await;
                consumer.shared.store_may_answer().await;
                source.next().await.map(|delivery| (room, delivery))
            };
            let taken = tokio::select! {
                biased;
                () = &mut shutdown => {
                    stay.stop.cancel();
                    break;
                }
                () = stay.stop.cancelled() => break,
                taken = next => taken,
            };
            let Some((room, delivery)) = taken else { break };
            // Here and not in the task: tasks begin in any order.
            let turn = consumer.turn(delivery.event());
            let (consumer, router, stay) = (consumer.clone(), router.clone(), stay.clone());
            in_hand.spawn(async move {
                consumer.handle_in_turn(delivery, &router, turn, &stay).await;
                drop(room);
            });
        }
        if !stay.stop.is_cancelled() {
            tokio::select! {
                biased;
                () = &mut shutdown => stay.stop.cancel(),
                () = stay.stop.cancelled() => {}
                () = ended(&consumer, &mut in_hand) => return Ok(()),
            }
        }
        tracing::info!(consumer = consumer.name(), in_hand = in_hand.len(), "shutdown requested; draining");
        match timeout(drain_max, ended(&consumer, &mut in_hand)).await {
            Ok(()) => Ok(()),
            Err(_elapsed) => Err(RunError::Undrained { left: in_hand.len() }),
        }
    }
}

/// Waits until all deliveries are done with.
async fn ended(consumer: &Consumer, in_hand: &mut JoinSet<()>) {
    while let Some(ended) = in_hand.join_next().await {
        report_panic(consumer, ended);
    }
}

/// A panic of a handler is caught in its attempt: this one is a defect of the adapter, and its broker delivers again.
fn report_panic(consumer: &Consumer, ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!(consumer = consumer.name(), %error, "a delivery was dropped by a panic");
    }
}

/// A copy that comes after the record of its event was removed is processed again.
fn report_horizon(consumer: &Consumer, horizon: Option<Duration>) {
    let retention = consumer.policy.retention;
    if let Some(horizon) = horizon.filter(|horizon| *horizon > retention) {
        tracing::warn!(
            consumer = consumer.name(),
            horizon_s = horizon.as_secs(),
            retention_s = retention.as_secs(),
            "the broker may deliver an event again after its record was removed; set a longer retention"
        );
    }
}
