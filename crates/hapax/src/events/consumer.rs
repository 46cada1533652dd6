//! [`Consumer`]: what is remembered of events, and how often they are tried.

mod process;
mod shared;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hapax_core::{OnLapse, Scope};

pub(super) use self::shared::Shared;
use super::decide::Rules;
use super::hold::BackOff;
use super::key::Unnamed;
use crate::hapax::Hapax;
use crate::policy::Policy;

/// How long the outcome of an event is remembered by default, from its completion.
const RETENTION: Duration = Duration::from_secs(30 * 24 * 3600);
const TRIES_MAX: u32 = 8;
const CRASHES_MAX: u32 = 3;
const CONCURRENCY: usize = 16;
/// How many deliveries are in hand for each that may run: the others wait, for another attempt or for their turn.
const IN_HAND_PER_RUN: usize = 4;
/// The largest event that is held for longer than one back-off: what is in hand is in memory.
const EVENT_BYTES_MAX: usize = 1 << 20;

/// Processes events at least once, and remembers them: a copy of an event that was processed is not processed again.
///
/// A consumer has a name, within which the key of an event is unique: two consumers with two names each process every
/// event. Events are remembered for 30 days from their completion.
///
/// - [`process`](Self::process) makes one attempt at an event, for any loop;
/// - [`handle`](Self::handle) processes a delivery until it is done with, and tells its broker;
/// - [`run`](Self::run) does so for everything that a source delivers;
/// - [`batch`](Self::batch) and [`invoke`](Self::invoke) do so within the time of one invocation of a function.
///
/// Clones share what they count. Set the options before the first clone.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use hapax::events::{Consumer, Event};
/// use hapax::{Hapax, MemoryStore};
///
/// let hapax = Hapax::new(MemoryStore::new());
/// let billing = Consumer::new(&hapax, "billing");
///
/// // The broker delivers the event twice.
/// for delivery in 1..=2 {
///     let event = Event::new("order.paid").id("evt-7").data(r#"{"order":"123"}"#);
///     let done = billing
///         // Send `cx.effect_key("card")` to the payment provider as its idempotency key.
///         .process(&event, |cx| async move { Ok::<_, std::io::Error>(format!("charged in attempt {}", cx.attempt())) })
///         .await
///         .unwrap();
///     assert_eq!((&*done.value, done.replayed), ("charged in attempt 1", delivery == 2));
///     // Acknowledge it now: `done.recorded` says that the outcome is stored.
///     assert!(done.recorded);
/// }
/// # });
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Consumer {
    pub(super) hapax: Hapax,
    pub(super) scope: Scope,
    pub(super) policy: Policy,
    pub(super) rules: Rules,
    pub(super) back_off: BackOff,
    pub(super) unnamed: Unnamed,
    pub(super) event_bytes_max: usize,
    pub(super) shared: Arc<Shared>,
    in_hand_max: Option<usize>,
}

/// Where events go that a consumer does not process any more. One place for all of them, never both.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum DeadLetters {
    /// Into their records, where [`dead_letter`](super::dead_letter) finds them; then they are acknowledged.
    #[default]
    Kept,
    /// Back to the broker after each failure. Its own limit of deliveries decides (`x-delivery-limit` of a quorum queue,
    /// `maxReceiveCount` of SQS), and [`tries_max`](Consumer::tries_max) and [`crashes_max`](Consumer::crashes_max) do not
    /// count.
    Broker,
}

/// What a consumer is doing, for a readiness probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ConsumerHealth {
    /// Whether it processes events: the store answered last, and it is not draining.
    pub is_ready: bool,
    /// Whether the last claim failed because the store could not be asked. No source is asked for more until it answers.
    pub is_store_failing: bool,
    /// Deliveries that are not yet acknowledged or given back.
    pub in_hand: usize,
    /// Those whose handler runs.
    pub running: usize,
    /// Those that are held until their next attempt, or for the store.
    pub held: usize,
}

impl Consumer {
    /// A consumer of this name with the defaults: at least once, remembered for 30 days.
    ///
    /// Lease, `run_max` and the rest of the policy are those of the [`Hapax`]; its deadline and its wait do not apply.
    ///
    /// # Panics
    /// When the name is empty.
    pub fn new(hapax: &Hapax, name: impl AsRef<str>) -> Self {
        assert!(!name.as_ref().is_empty(), "a consumer has a name, within which its events are remembered");
        let mut policy = hapax.policy().on_lapse(OnLapse::Rerun).retention(RETENTION).wait(Duration::ZERO);
        policy.deadline = None;
        let rules = Rules {
            tries_max: TRIES_MAX,
            crashes_max: CRASHES_MAX,
            on_lapse: OnLapse::Rerun,
            dead_letters: DeadLetters::Kept,
            lease: policy.lease,
        };
        Self {
            hapax: hapax.clone(),
            scope: Scope::new(name),
            policy,
            rules,
            back_off: BackOff::default(),
            unnamed: Unnamed::Refuse,
            event_bytes_max: EVENT_BYTES_MAX,
            shared: Arc::new(Shared::new(CONCURRENCY, CONCURRENCY * IN_HAND_PER_RUN)),
            in_hand_max: None,
        }
    }

    /// Sets the namespace, which separates deployments that share a store.
    pub fn namespace(mut self, namespace: impl Into<Arc<str>>) -> Self {
        self.scope = self.scope.in_namespace(namespace);
        self
    }

    /// How long the outcome of an event is remembered, counted from its completion: longer than the broker may deliver it
    /// again. Dead letters are kept until they are removed or redriven. Default 30 days.
    ///
    /// # Panics
    /// When it is zero.
    pub fn retention(mut self, retention: Duration) -> Self {
        assert!(!retention.is_zero(), "with a retention of zero every copy of an event is processed");
        self.policy = self.policy.retention(retention);
        self
    }

    /// How long a claim is valid without renewal; see [`Policy::lease`]. Default: that of the [`Hapax`].
    ///
    /// # Panics
    /// When it is zero.
    pub fn lease(mut self, lease: Duration) -> Self {
        assert!(!lease.is_zero(), "a lease of zero lapses before its claim is answered");
        self.policy = self.policy.lease(lease);
        self.rules.lease = self.policy.lease;
        self
    }

    /// How long a handler may run before its lease is no longer renewed; see [`Policy::run_max`]. Default: that of the
    /// [`Hapax`].
    ///
    /// # Panics
    /// When it is zero.
    pub fn run_max(mut self, run_max: Duration) -> Self {
        assert!(!run_max.is_zero(), "a run of no time never renews its lease");
        self.policy = self.policy.run_max(run_max);
        self
    }

    /// In which attempt a failure makes the event a dead letter. Default 8.
    ///
    /// # Panics
    /// When it is zero.
    pub fn tries_max(mut self, tries_max: u32) -> Self {
        assert!(tries_max > 0, "an event has at least one try");
        self.rules.tries_max = tries_max;
        self
    }

    /// How many attempts in a row may end without a word, by a crash of the process or a panic of the handler; then the
    /// event is a dead letter. Default 3.
    ///
    /// # Panics
    /// When it is zero.
    pub fn crashes_max(mut self, crashes_max: u32) -> Self {
        assert!(crashes_max > 0, "an attempt must begin to find out that it crashes");
        self.rules.crashes_max = crashes_max;
        self
    }

    /// What happens to an event whose attempt ended without a word. [`OnLapse::Rerun`], the default, tries it again: at
    /// least once. With [`OnLapse::Uncertain`] it is a dead letter: at most once.
    pub fn on_lapse(mut self, on_lapse: OnLapse) -> Self {
        self.policy = self.policy.on_lapse(on_lapse);
        self.rules.on_lapse = on_lapse;
        self
    }

    /// Where events go that are not processed any more. Default: into their records.
    pub fn dead_letters(mut self, dead_letters: DeadLetters) -> Self {
        self.rules.dead_letters = dead_letters;
        self
    }

    /// The pauses between two attempts at an event. Default: from 1 s, doubled, to 5 minutes, with full jitter.
    pub fn back_off(mut self, back_off: BackOff) -> Self {
        self.back_off = back_off;
        self
    }

    /// What to do with an event that has neither a key nor an id nor a position. Default: it is a dead letter.
    pub fn unnamed(mut self, unnamed: Unnamed) -> Self {
        self.unnamed = unnamed;
        self
    }

    /// How many handlers run at a time. Default 16.
    ///
    /// # Panics
    /// When it is zero.
    pub fn concurrency(mut self, concurrency: usize) -> Self {
        assert!(concurrency > 0, "at least one handler runs at a time");
        let in_hand_max = self.in_hand_max.unwrap_or(concurrency.saturating_mul(IN_HAND_PER_RUN));
        self.shared = Arc::new(Shared::new(concurrency, in_hand_max));
        self
    }

    /// How many deliveries of a source are in hand: those that run, and those that are held until their next attempt or
    /// wait for their turn. No more are taken from the source. Default: four times the [`concurrency`](Self::concurrency).
    ///
    /// # Panics
    /// When it is zero.
    pub fn in_hand_max(mut self, in_hand_max: usize) -> Self {
        assert!(in_hand_max > 0, "at least one delivery is in hand");
        self.in_hand_max = Some(in_hand_max);
        self.shared = Arc::new(Shared::new(self.shared.concurrency(), in_hand_max));
        self
    }

    /// The largest event that is held for longer than one back-off. A larger one is given back to its broker after each
    /// failure, because what is in hand is in memory. Default 1 MiB.
    pub fn event_bytes_max(mut self, event_bytes_max: usize) -> Self {
        self.event_bytes_max = event_bytes_max;
        self
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.scope.operation()
    }

    /// What it is doing now.
    pub fn health(&self) -> ConsumerHealth {
        let is_store_failing = self.shared.is_store_failing();
        let is_stopping =
            self.shared.stop.is_cancelled() || self.hapax.engine.draining.load(Ordering::SeqCst);
        ConsumerHealth {
            is_ready: !is_store_failing && !is_stopping,
            is_store_failing,
            in_hand: self.shared.in_hand(),
            running: self.shared.running(),
            held: self.shared.held(),
        }
    }

    /// Ends it: what is held is given back to its broker, and so is every later delivery. What runs goes on to its end and
    /// is acknowledged. For loops that call [`handle`](Self::handle) themselves; a [`Run`](super::Run) ends by its own
    /// shutdown.
    pub fn stop(&self) {
        self.shared.stop.cancel();
    }

    /// The policy of a claim. The sizes of outcomes are bounded where they are made: a dead letter by the store alone.
    pub(super) fn claim_policy(&self) -> Policy {
        let attempts_max = match self.rules.dead_letters {
            DeadLetters::Kept => self.rules.crashes_max,
            DeadLetters::Broker => u32::MAX,
        };
        self.policy.attempts_max(attempts_max).outcome_bytes_max(usize::MAX)
    }
}
