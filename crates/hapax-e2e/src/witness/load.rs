//! All the callers at once, and what they were told.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::caller::{Caller, Mark, Said, Whereabouts};
use super::ledger::{Answer, Ledger};
use super::{Fault, Report};
use crate::crash::seed::Seed;

/// Callers at a time, each with a connection of its own.
const CALLERS: usize = 64;
/// Keys that are sent before the first of them comes again, where duplicates do not come together.
const BLOCK: u64 = 64;
/// A fickle caller hangs up after less than this, when most requests are still under way.
const FICKLE_MICROS: u64 = 10_000;

/// What callers send.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    /// Requests, not counting their retries.
    pub(crate) requests: u64,
    /// Requests of one key.
    pub(crate) duplicates: u64,
    /// A request without a last answer for this long is stuck.
    pub(crate) patience: Duration,
    /// Whether callers hang up.
    pub(crate) manners: Manners,
}

/// Whether callers hang up.
#[derive(Clone, Debug)]
pub(crate) enum Manners {
    /// They wait for every answer.
    Patient,
    /// They hang up.
    Hasty {
        /// After this long.
        after: Duration,
        /// So many attempts in a hundred nearly at once.
        fickle_percent: u64,
        /// Which ones.
        seed: Seed,
    },
}

/// Callers at work.
pub(crate) struct Running {
    shared: Arc<Shared>,
    callers: JoinSet<()>,
}

/// What callers were told.
pub(crate) struct Loaded {
    pub(crate) report: Report,
    /// The keys that somebody got a recorded answer for, and that answer.
    pub(crate) answered: HashMap<u64, Answer>,
}

/// What the callers share.
struct Shared {
    load: Load,
    ledger: Arc<Ledger>,
    next: AtomicU64,
    admitted: watch::Sender<u64>,
    ended: watch::Sender<u64>,
    answered: Mutex<HashMap<u64, Answer>>,
    report: Mutex<Report>,
}

impl Running {
    /// Sets all callers to work, as far as they are admitted.
    pub(crate) fn start(load: &Load, sidecars: &[Whereabouts], ledger: &Arc<Ledger>) -> Self {
        let shared = Arc::new(Shared {
            load: load.clone(),
            ledger: ledger.clone(),
            next: AtomicU64::new(0),
            admitted: watch::Sender::new(0),
            ended: watch::Sender::new(0),
            answered: Mutex::default(),
            report: Mutex::default(),
        });
        let mut callers = JoinSet::new();
        for number in 0..CALLERS {
            let caller = Caller::new(sidecars.to_vec(), number);
            callers.spawn(call(caller, load.manners.part(number), shared.clone()));
        }
        Self { shared, callers }
    }

    /// Lets callers go on up to this request. Nobody is called back.
    pub(crate) fn admit(&self, request: u64) {
        self.shared.admitted.send_if_modified(|admitted| {
            let is_more = request > *admitted;
            *admitted = request.max(*admitted);
            is_more
        });
    }

    /// How many requests have their last answer.
    pub(crate) fn ended(&self) -> watch::Receiver<u64> {
        self.shared.ended.subscribe()
    }

    /// Lets all callers come to their end.
    pub(crate) async fn finish(mut self) -> Result<Loaded> {
        self.admit(self.shared.load.requests);
        while let Some(ended) = self.callers.join_next().await {
            ended?;
        }
        let Load { requests, duplicates, .. } = self.shared.load;
        let report = std::mem::take(&mut *self.shared.report.lock());
        let report = Report { keys: keys(requests, duplicates), ..report };
        let answered = std::mem::take(&mut *self.shared.answered.lock());
        Ok(Loaded { report, answered })
    }
}

impl Manners {
    fn part(&self, caller: usize) -> Self {
        match self {
            Self::Patient => Self::Patient,
            Self::Hasty { after, fickle_percent, seed } => {
                Self::Hasty { after: *after, fickle_percent: *fickle_percent, seed: seed.part(caller as u64) }
            }
        }
    }

    /// How long the next attempt may take.
    fn next(&mut self) -> Option<Duration> {
        let Self::Hasty { after, fickle_percent, seed } = self else { return None };
        let is_fickle = seed.percent(*fickle_percent);
        Some(if is_fickle { Duration::from_micros(seed.below(FICKLE_MICROS)) } else { *after })
    }
}

/// One caller: a request after the other, and in between those that it was told to send again later.
async fn call(mut caller: Caller, mut manners: Manners, shared: Arc<Shared>) {
    let mut later = VecDeque::new();
    while let Some(order) = next(&mut later, &shared).await {
        let heard = shared.answered.lock().get(&order.key).cloned();
        let hangs_up = manners.next().map(|after| Instant::now() + after).filter(|at| *at < order.until);
        match timeout_at(hangs_up.unwrap_or(order.until), caller.attempt(order.key)).await {
            Ok(Said::InProgress(wait)) => later.push_back((Instant::now() + wait, order)),
            Ok(Said::Again) => later.push_front((Instant::now(), order)),
            Ok(said) => {
                shared.end(order.key, heard.as_ref(), Some(said));
                continue;
            }
            Err(_hung_up) if hangs_up.is_some() => {
                shared.report.lock().hang_ups += 1;
                later.push_front((Instant::now(), order));
            }
            Err(_too_late) => {
                shared.end(order.key, heard.as_ref(), None);
                continue;
            }
        }
        shared.report.lock().retries += 1;
    }
}

/// What a caller sends next: what is due, something new, or what will be due.
async fn next(later: &mut VecDeque<(Instant, Order)>, shared: &Shared) -> Option<Order> {
    let mut admitted = shared.admitted.subscribe();
    loop {
        let is_due = later.front().is_some_and(|(due, _)| *due <= Instant::now());
        if !is_due && let Some(order) = shared.fresh() {
            return Some(order);
        }
        if let Some((due, order)) = later.pop_front() {
            sleep_until(due).await;
            return Some(order);
        }
        if shared.next.load(Ordering::Relaxed) >= shared.load.requests {
            return None;
        }
        admitted.changed().await.ok()?;
    }
}

/// One request on its way to a last answer.
#[derive(Clone, Copy, Debug)]
struct Order {
    key: u64,
    /// When there is no more patience.
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

    /// A request has its last answer, or none. `heard` was what callers knew before it was sent.
    fn end(&self, key: u64, heard: Option<&Answer>, said: Option<Said>) {
        let fault = match said {
            Some(Said::Answer { answer, mark }) => self.judge(key, heard, answer, mark),
            Some(Said::Uncertain(_)) if heard.is_none() => None,
            None => Some(Fault::Stuck("no last answer".to_owned())),
            Some(other) => Some(Fault::Lost(format!("answered {other:?}; heard before: {heard:?}"))),
        };
        let mut report = self.report.lock();
        fault.into_iter().for_each(|fault| report.note(key, fault));
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

    fn judge(&self, key: u64, heard: Option<&Answer>, answer: Answer, mark: Mark) -> Option<Fault> {
        let given = self.ledger.entry(key).answers;
        let mut report = self.report.lock();
        report.replays += u64::from(mark == Mark::Replay);
        report.unrecorded += u64::from(mark == Mark::Unrecorded);
        drop(report);
        if !given.contains(&answer) {
            return Some(Fault::Wrong(format!("answered {answer:?} and not {given:?}")));
        }
        if heard.is_some_and(|heard| *heard != answer) {
            return Some(Fault::Lost(format!("answered {answer:?}; heard before: {heard:?}")));
        }
        if mark != Mark::Unrecorded {
            self.answered.lock().entry(key).or_insert(answer);
        }
        None
    }
}

/// In every second block of keys duplicates come together, in the others one after the other.
fn key_of(number: u64, duplicates: u64) -> u64 {
    let (block, place) = (number / (BLOCK * duplicates), number % (BLOCK * duplicates));
    let key = if block.is_multiple_of(2) { place / duplicates } else { place % BLOCK };
    block * BLOCK + key
}

/// How many keys so many requests have: all below this number.
fn keys(requests: u64, duplicates: u64) -> u64 {
    (0..requests).map(|number| key_of(number, duplicates)).max().map_or(0, |last| last + 1)
}
