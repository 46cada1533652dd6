//! [`RunningLoad`]: all callers, concurrently, and their answers.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;
use hapax_testkit::Random;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::LoadReport;
use super::audit::check_answer;
use super::caller::{AnswerSource, AttemptResult, Caller};
use super::damage::AuditFault;
use super::effects::EffectLog;
use super::ledger::Ledger;
use super::service::OrderAnswer;
use super::sidecar::SidecarAddress;

/// Concurrent callers, each with its own connection.
const CALLERS: usize = 64;
/// Keys that are sent before the first of them is sent again, where duplicates are not sent together.
const BLOCK: u64 = 64;
/// Some callers hang up after less than this, while most requests are in flight.
const EARLY_HANG_UP_MICROS: u64 = 10_000;

/// What callers send.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    /// Requests, not counting their retries.
    pub(crate) requests: u64,
    /// Requests of one key.
    pub(crate) duplicates: u64,
    /// A request without a final answer for this long is stuck.
    pub(crate) patience: Duration,
    /// Whether callers hang up.
    pub(crate) hang_ups: HangUps,
}

/// Whether callers hang up.
#[derive(Clone, Debug)]
pub(crate) enum HangUps {
    /// They wait for every answer.
    Never,
    /// They hang up.
    After {
        /// After this long.
        wait: Duration,
        /// So many attempts in a thousand within [`EARLY_HANG_UP_MICROS`].
        early_per_mille: u32,
        /// Decides which ones.
        random: Random,
    },
}

/// Callers at work.
pub(crate) struct RunningLoad {
    shared: Arc<Shared>,
    callers: JoinSet<()>,
}

/// What came of a load.
pub(crate) struct FinishedLoad {
    pub(crate) report: LoadReport,
    /// The keys, and the answers that were given as recorded.
    pub(crate) ledger: Ledger<OrderAnswer>,
}

/// State that the callers share.
struct Shared {
    load: Load,
    effects: Arc<EffectLog<OrderAnswer>>,
    ledger: Ledger<OrderAnswer>,
    next: AtomicU64,
    admitted: watch::Sender<u64>,
    ended: watch::Sender<u64>,
    report: Mutex<LoadReport>,
}

impl RunningLoad {
    /// Starts all callers. They send requests as far as these are admitted.
    pub(crate) fn start(
        load: &Load,
        sidecars: &[SidecarAddress],
        effects: &Arc<EffectLog<OrderAnswer>>,
    ) -> Self {
        let keys = key_count(load.requests, load.duplicates);
        let shared = Arc::new(Shared {
            load: load.clone(),
            effects: effects.clone(),
            ledger: Ledger::new(0..keys),
            next: AtomicU64::new(0),
            admitted: watch::Sender::new(0),
            ended: watch::Sender::new(0),
            report: Mutex::new(LoadReport { keys, ..LoadReport::default() }),
        });
        let mut callers = JoinSet::new();
        for number in 0..CALLERS {
            let caller = Caller::new(sidecars.to_vec(), number);
            callers.spawn(call(caller, load.hang_ups.of_caller(number), shared.clone()));
        }
        Self { shared, callers }
    }

    /// Admits requests up to this number. It never decreases.
    pub(crate) fn admit(&self, request: u64) {
        self.shared.admitted.send_if_modified(|admitted| {
            let is_more = request > *admitted;
            *admitted = request.max(*admitted);
            is_more
        });
    }

    /// How many requests have their final answer.
    pub(crate) fn ended(&self) -> watch::Receiver<u64> {
        self.shared.ended.subscribe()
    }

    /// Admits all requests and waits for the callers.
    pub(crate) async fn finish(mut self) -> Result<FinishedLoad> {
        self.admit(self.shared.load.requests);
        while let Some(ended) = self.callers.join_next().await {
            ended?;
        }
        let shared = Arc::into_inner(self.shared).expect("all callers have ended");
        Ok(FinishedLoad { report: shared.report.into_inner(), ledger: shared.ledger })
    }
}

impl HangUps {
    fn of_caller(&self, caller: usize) -> Self {
        match self {
            Self::Never => Self::Never,
            Self::After { wait, early_per_mille, random } => Self::After {
                wait: *wait,
                early_per_mille: *early_per_mille,
                random: random.fork(caller as u64),
            },
        }
    }

    /// How long the next attempt may take.
    fn next(&mut self) -> Option<Duration> {
        let Self::After { wait, early_per_mille, random } = self else { return None };
        let is_early = random.chance(*early_per_mille);
        Some(if is_early { Duration::from_micros(random.below(EARLY_HANG_UP_MICROS)) } else { *wait })
    }
}

/// One caller: it sends one request at a time, and retries those that are due.
async fn call(mut caller: Caller, mut hang_ups: HangUps, shared: Arc<Shared>) {
    let mut retries = VecDeque::new();
    while let Some(order) = next(&mut retries, &shared).await {
        let heard = shared.ledger.first_answer(order.key);
        let hang_up = hang_ups.next().map(|after| Instant::now() + after).filter(|at| *at < order.until);
        match timeout_at(hang_up.unwrap_or(order.until), caller.attempt(order.key)).await {
            Ok(AttemptResult::InProgress(wait)) => retries.push_back((Instant::now() + wait, order)),
            Ok(AttemptResult::Retry) => retries.push_front((Instant::now(), order)),
            Ok(result) => {
                shared.end(order.key, heard.as_ref(), Some(result));
                continue;
            }
            Err(_hung_up) if hang_up.is_some() => {
                shared.report.lock().hang_ups += 1;
                retries.push_front((Instant::now(), order));
            }
            Err(_too_late) => {
                shared.end(order.key, heard.as_ref(), None);
                continue;
            }
        }
        shared.report.lock().retries += 1;
    }
}

/// What a caller sends next: a retry that is due, a new request, or the next retry once it is due.
async fn next(retries: &mut VecDeque<(Instant, Order)>, shared: &Shared) -> Option<Order> {
    let mut admitted = shared.admitted.subscribe();
    loop {
        let is_due = retries.front().is_some_and(|(due, _)| *due <= Instant::now());
        if !is_due && let Some(order) = shared.fresh() {
            return Some(order);
        }
        if let Some((due, order)) = retries.pop_front() {
            sleep_until(due).await;
            return Some(order);
        }
        if shared.next.load(Ordering::Relaxed) >= shared.load.requests {
            return None;
        }
        admitted.changed().await.ok()?;
    }
}

/// One request without a final answer.
#[derive(Clone, Copy, Debug)]
struct Order {
    key: u64,
    /// When it counts as stuck.
    until: Instant,
}

impl Shared {
    /// A new request, if one is admitted.
    fn fresh(&self) -> Option<Order> {
        let admitted = (*self.admitted.borrow()).min(self.load.requests);
        let take = |number| (number < admitted).then_some(number + 1);
        let number = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).ok()?;
        let key = key_of(number, self.load.duplicates);
        Some(Order { key, until: Instant::now() + self.load.patience })
    }

    /// Ends a request with its final answer, or without one. `heard` is what callers knew before it was sent.
    fn end(&self, key: u64, heard: Option<&OrderAnswer>, result: Option<AttemptResult>) {
        let fault = match result {
            Some(AttemptResult::Answered { answer, source }) => self.check(key, heard, answer, source).err(),
            Some(AttemptResult::Uncertain(_)) if heard.is_none() => None,
            None => Some(AuditFault::Stuck("no final answer".to_owned())),
            Some(other) => Some(AuditFault::Lost(format!("answered {other:?}; heard before: {heard:?}"))),
        };
        let mut report = self.report.lock();
        fault.into_iter().for_each(|fault| report.damage.add_fault(key, fault));
        report.requests += 1;
        let is_hopeless = report.is_hopeless();
        drop(report);
        if is_hopeless {
            self.next.store(self.load.requests, Ordering::Relaxed);
            self.ended.send_replace(self.load.requests);
        } else {
            self.ended.send_modify(|ended| *ended += 1);
        }
    }

    fn check(
        &self,
        key: u64,
        heard: Option<&OrderAnswer>,
        answer: OrderAnswer,
        source: AnswerSource,
    ) -> Result<(), AuditFault> {
        let mut report = self.report.lock();
        report.replays += u64::from(source == AnswerSource::Replay);
        report.unrecorded += u64::from(source == AnswerSource::Unrecorded);
        drop(report);
        check_answer(&self.effects.of(key), heard, &answer)?;
        if source != AnswerSource::Unrecorded {
            self.ledger.add_answer(key, answer);
        }
        Ok(())
    }
}

/// In every second block of keys duplicates are sent together, in the others one after the other.
fn key_of(number: u64, duplicates: u64) -> u64 {
    let (block, position) = (number / (BLOCK * duplicates), number % (BLOCK * duplicates));
    let key = if block.is_multiple_of(2) { position / duplicates } else { position % BLOCK };
    block * BLOCK + key
}

/// How many keys so many requests have: all below this number.
fn key_count(requests: u64, duplicates: u64) -> u64 {
    (0..requests).map(|number| key_of(number, duplicates)).max().map_or(0, |last| last + 1)
}
