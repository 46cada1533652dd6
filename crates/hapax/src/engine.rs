//! Claim, run, complete or release. The only file that sequences store calls.
//!
//! The order of one execution:
//!
//! 1. an attempt whose caller goes away goes on in a task of its own, so that nobody can cancel the run or lose its
//!    result by hanging up;
//! 2. the key is **claimed**; anything but *acquired* hands the work back unrun;
//! 3. the lease is renewed while the work **runs**;
//! 4. the outcome is **recorded** (pinned, released or left uncertain), and only then answered. When recording
//!    fails, the true result is answered all the same, marked as not recorded, and recording goes on behind it.

pub(crate) mod cache;
pub(crate) mod calls;
mod context;
mod detached;
mod given_up;
mod known;
pub(crate) mod lease;
mod reconcile;
mod sweep;
pub(crate) mod wait;

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::FutureExt;
use hapax_core::{
    Claim, ClaimRequest, Fence, Fenced, Fingerprint, Format, Lease, Nonce, Reason, RecordId, Recorded,
    ScopedKey, StoreError, StoreErrorKind,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tracing::Instrument;

use self::cache::{Facts, Known, Moment};
use self::calls::{Calls, Pauses};
pub use self::context::{Context, LeaseLost};
use self::detached::{Detached, Panicked};
use self::given_up::unused;
use self::lease::{Hold, Leases};
pub(crate) use self::reconcile::Reconcile;
pub use self::reconcile::{Question, Reconciled};
pub(crate) use self::sweep::sweep_for_ever;
use self::wait::Waiters;
use crate::observe::{self, Outage, Present};
use crate::policy::Policy;

/// How often a claim whose answer was lost is asked for again before the caller is refused.
const CLAIM_TRIES: u32 = 4;
/// How often recording is tried while the caller waits.
const RECORD_TRIES: u32 = 3;
/// How often it is tried behind the caller's back: at pauses of 2 s, about an hour.
const RECORD_TRIES_BEHIND: u32 = 1800;
/// How often one call asks a reconciler: a second time only when somebody else's attempt lapsed meanwhile.
const RECONCILE_MAX: u32 = 2;
/// The longest pause a duplicate is advised to make.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(1);

/// One operation to be executed. It is large and goes through many hands, and so do its parts: what seldom happens is
/// boxed, because every future is as large as its largest branch and is moved as a whole.
pub(crate) struct Job {
    pub(crate) key: ScopedKey,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) policy: Policy,
    pub(crate) reconcile: Option<Reconcile>,
    /// From when on a record of this key may be forgotten, where such keys are to be refused.
    pub(crate) expires_at: Option<SystemTime>,
    /// The route that the request came by, where there is one.
    pub(crate) route: Option<Arc<str>>,
}

impl Job {
    fn is_expired(&self) -> bool {
        self.expires_at.is_some_and(|expires_at| SystemTime::now() > expires_at)
    }
}

/// What a run hands over: a value for its own caller, and what becomes of the record.
pub(crate) struct Ended<V> {
    pub(crate) value: V,
    pub(crate) finish: Finish,
}

/// What becomes of the record after a run.
#[derive(Clone)]
pub(crate) enum Finish {
    Pin(Recorded),
    Release(Option<Recorded>),
    Uncertain(Reason),
}

/// What an execution gives its caller.
pub(crate) enum Execution<V> {
    Ran { value: V, recorded: bool },
    Replayed(Recorded),
}

/// Why nothing was executed, or why nobody can say what came of it.
#[derive(Debug)]
pub(crate) enum Refusal {
    InProgress {
        retry_after: Duration,
    },
    Mismatch,
    Expired,
    Uncertain {
        id: RecordId,
        reason: Reason,
    },
    /// The run that this caller asked for panicked.
    Panicked {
        id: RecordId,
    },
    Unreadable {
        id: RecordId,
    },
    Superseded {
        id: RecordId,
    },
    Deadline {
        id: RecordId,
    },
    Draining,
    /// The store took no claim, and has told nothing of the key.
    Store(StoreError),
    /// The store failed, and there is another attempt that is running, ended or unknown. Whoever would rather run
    /// without a store than not at all must not run this.
    Taken(StoreError),
}

/// The parts that every execution shares.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) calls: Calls,
    pub(crate) leases: Arc<Leases>,
    pub(crate) waiters: Arc<Waiters>,
    pub(crate) facts: Facts,
    pub(crate) tasks: TaskTracker,
    pub(crate) draining: AtomicBool,
    pub(crate) outage: Outage,
    pub(crate) _keeper: KeeperGuard,
}

/// Ends what renews and sweeps, and waits until it has let go of the store: whoever drops the last [`Engine`] may open
/// the store again.
#[derive(Debug)]
pub(crate) struct KeeperGuard {
    pub(crate) stop: CancellationToken,
    pub(crate) thread: Option<JoinHandle<()>>,
}

impl Drop for KeeperGuard {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            // The thread wakes, drops its few tasks and ends. Its panic, if it had one, was reported by itself.
            let _ = thread.join();
        }
    }
}

/// How one attempt went.
enum Attempt<V, W> {
    Ended(Result<Execution<V>, Refusal>),
    NotAcquired(Box<Unrun<W>>),
}

/// The key was not acquired: the work comes back as it was.
struct Unrun<W> {
    claim: Claim,
    asked_at: Moment,
    job: Box<Job>,
    work: W,
}

impl Engine {
    /// Executes `work` once for the job's key, or answers from what was recorded, within the caller's deadline.
    pub(crate) async fn execute<V, W, F>(
        self: &Arc<Self>,
        job: Box<Job>,
        work: W,
    ) -> Result<Execution<V>, Refusal>
    where
        V: Send + 'static,
        W: FnOnce(Context) -> F + Send + 'static,
        F: Future<Output = Ended<V>> + Send + 'static,
    {
        let id = job.key.id;
        match job.policy.deadline {
            None => self.answer(job, work).await,
            // To be dropped at its deadline is for a caller's future what it is to be dropped by its caller.
            Some(deadline) => match tokio::time::timeout(deadline, Box::pin(self.answer(job, work))).await {
                Ok(answer) => answer,
                Err(_elapsed) => Err(Refusal::Deadline { id }),
            },
        }
    }

    async fn answer<V, W, F>(
        self: &Arc<Self>,
        mut job: Box<Job>,
        mut work: W,
    ) -> Result<Execution<V>, Refusal>
    where
        V: Send + 'static,
        W: FnOnce(Context) -> F + Send + 'static,
        F: Future<Output = Ended<V>> + Send + 'static,
    {
        let id = job.key.id;
        let wait_until = (!job.policy.wait.is_zero()).then(|| Instant::now() + job.policy.wait);
        if job.is_expired() && !Box::pin(self.remembers(&id)).await? {
            return Err(Refusal::Expired);
        }
        let mut place = None;
        let mut reconciliations = 0;
        loop {
            match self.recall(&id, &job.fingerprint) {
                Some(Known::Replay(recorded)) => return Ok(Execution::Replayed(recorded)),
                Some(Known::Mismatch) => return Err(Refusal::Mismatch),
                None => {}
            }
            let token = self.admit()?;
            let span = observe::execution(&job.key);
            let attempt = Detached::new(self.clone().attempt(job, work, token).instrument(span));
            // The work's own panics are caught inside: this would be a defect of ours.
            let (claim, asked_at) = match attempt.await.map_err(|Panicked| Refusal::Panicked { id })? {
                Attempt::Ended(Err(Refusal::Store(error))) => {
                    let is_taken = place.is_some() || reconciliations > 0;
                    return Err(if is_taken { Refusal::Taken(error) } else { Refusal::Store(error) });
                }
                Attempt::Ended(result) => return result,
                Attempt::NotAcquired(unrun) => {
                    (job, work) = (unrun.job, unrun.work);
                    (unrun.claim, unrun.asked_at)
                }
            };
            match claim {
                Claim::Busy { lease_left } => {
                    if !Box::pin(self.wait_for_news(&mut place, id, wait_until)).await {
                        return Err(Refusal::InProgress { retry_after: lease_left.min(RETRY_AFTER_MAX) });
                    }
                }
                Claim::Uncertain { fence, reason } if reconciliations < RECONCILE_MAX => {
                    reconciliations += 1;
                    if !Box::pin(self.reconcile(&job, fence, reason)).await? {
                        self.report_lapsed(&job, fence, reason);
                        return Err(Refusal::Uncertain { id, reason });
                    }
                }
                Claim::Uncertain { fence, reason } => {
                    self.report_lapsed(&job, fence, reason);
                    return Err(Refusal::Uncertain { id, reason });
                }
                Claim::Replay { recorded, remaining } => {
                    let recorded = self.facts.share(&id, recorded);
                    self.facts.keep(id, job.fingerprint, &recorded, asked_at, remaining);
                    return Ok(Execution::Replayed(recorded));
                }
                Claim::Mismatch => return Err(Refusal::Mismatch),
                Claim::Unreadable | Claim::Acquired(_) => return Err(Refusal::Unreadable { id }),
            }
        }
    }

    /// Says that an owner was lost, where this process sees it first by a claim. Other causes were told by the owner.
    fn report_lapsed(&self, job: &Job, fence: Fence, reason: Reason) {
        if reason == Reason::Lapsed && self.leases.is_first_report(job.key.id, fence.attempt) {
            observe::became_uncertain(&job.key.id, fence.attempt, job.route.as_deref(), reason, None);
        }
    }

    /// Lets an execution begin unless the process is draining.
    fn admit(&self) -> Result<TaskTrackerToken, Refusal> {
        // The place among the tasks is taken before looking, so that draining either sees it or is seen.
        let token = self.tasks.token();
        if self.draining.load(Ordering::SeqCst) { Err(Refusal::Draining) } else { Ok(token) }
    }

    /// Waits until the record may have changed; false when there is no time or no room to wait.
    async fn wait_for_news(
        &self,
        place: &mut Option<wait::Place>,
        id: RecordId,
        until: Option<Instant>,
    ) -> bool {
        let Some(until) = until.filter(|until| *until > Instant::now()) else { return false };
        match place {
            Some(place) => place.changed(until).await,
            // Claim once more before the first wait: the news may have come before there was anybody to hear it.
            None => {
                *place = self.waiters.join(id);
                place.is_some()
            }
        }
    }

    /// Claims and, if acquired, runs and records. Without its caller, it goes on in a task of its own.
    async fn attempt<V, W, F>(
        self: Arc<Self>,
        job: Box<Job>,
        work: W,
        _token: TaskTrackerToken,
    ) -> Attempt<V, W>
    where
        W: FnOnce(Context) -> F + Send + 'static,
        F: Future<Output = Ended<V>> + Send + 'static,
    {
        match self.claim(&job).await {
            // Nothing was remembered of it at the moment that counts: the claim itself.
            Ok((Claim::Acquired(lease), _)) if lease.fence.attempt == 1 && job.is_expired() => {
                Box::pin(self.give_up(lease)).await;
                Attempt::Ended(Err(Refusal::Expired))
            }
            Ok((Claim::Acquired(lease), asked_at)) => {
                Attempt::Ended(Box::pin(self.perform(&job, lease, asked_at.at, work)).await)
            }
            Ok((claim, asked_at)) => Attempt::NotAcquired(Box::new(Unrun { claim, asked_at, job, work })),
            Err(error) => Attempt::Ended(Err(Refusal::Store(error))),
        }
    }

    /// Claims, asking again with the same nonce when an answer was lost. All tries together take no longer than one call
    /// may: whoever waits is refused then.
    async fn claim(self: &Arc<Self>, job: &Job) -> Result<(Claim, Moment), StoreError> {
        let policy = &job.policy;
        let mut ask = ClaimRequest {
            key: job.key.clone(),
            fingerprint: job.fingerprint,
            nonce: Nonce::random(),
            lease: policy.lease,
            on_lapse: policy.on_lapse,
            attempts_max: policy.attempts_max,
            uncertain_retention: policy.uncertain_retention,
        };
        let mut pauses = Pauses::new();
        let mut in_doubt = false;
        let mut tries = 0;
        let within = self.calls.within(ask.lease);
        let mut until = Instant::now() + within;
        loop {
            tries += 1;
            let asked_at = self.facts.moment(&ask.key.id);
            let left = until.saturating_duration_since(asked_at.at);
            // An answer that does not come must leave time to ask again.
            let limit = if tries == CLAIM_TRIES { left } else { left / 2 };
            // Made inside: a store may panic before it has a future to give.
            let call = async { self.calls.store.claim(&ask).await };
            let answer = self.calls.once("claim", limit, call).await;
            let took = asked_at.at.elapsed();
            match answer {
                // This process was held up for a whole lease before it could hear the answer. Nothing has run, and
                // the claim may be in other hands before anything does.
                Ok(Claim::Acquired(_)) if took >= ask.lease => Box::pin(self.give_up(unused(&ask))).await,
                // Its own claim, written down as uncertain before its answer arrived.
                Ok(Claim::Uncertain { fence, .. }) if fence.nonce == ask.nonce => {
                    Box::pin(self.give_up(unused(&ask))).await
                }
                Ok(claim) => {
                    observe::claimed_in(took);
                    self.outage.succeeded();
                    return Ok((claim, asked_at));
                }
                Err(error)
                    if tries < CLAIM_TRIES && (error.is_unknown() || in_doubt && error.is_transient()) =>
                {
                    in_doubt = true;
                    pauses.next().await;
                    continue;
                }
                Err(error) => {
                    if in_doubt || error.is_unknown() {
                        self.give_up_unanswered(ask);
                    }
                    self.outage.failed(&error);
                    return Err(error);
                }
            }
            if tries == CLAIM_TRIES {
                let late = StoreError::new(StoreErrorKind::Unavailable, "claim");
                return Err(late.with_source("every answer came later than the lease it was about"));
            }
            ask.nonce = Nonce::random();
            in_doubt = false;
            until = Instant::now() + within;
        }
    }

    /// Runs `work` without a claim after the store failed by `error`, unless this process runs the operation already.
    /// Without its caller, it goes on in a task of its own.
    #[cfg(feature = "http")]
    pub(crate) async fn pass<F>(&self, id: RecordId, error: StoreError, work: F) -> Result<F::Output, Refusal>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let token = self.admit()?;
        let Some(passing) = self.leases.pass(id) else { return Err(Refusal::Taken(error)) };
        let run = async move {
            let _until_the_end = (token, passing);
            work.await
        };
        Detached::new(run).await.map_err(|Panicked| Refusal::Panicked { id })
    }

    /// Runs the work under its lease and records what came of it.
    async fn perform<V, W, F>(
        self: &Arc<Self>,
        job: &Job,
        lease: Lease,
        asked_at: Instant,
        work: W,
    ) -> Result<Execution<V>, Refusal>
    where
        W: FnOnce(Context) -> F + Send + 'static,
        F: Future<Output = Ended<V>> + Send + 'static,
    {
        let _present = Present::in_gauge(observe::IN_PROGRESS);
        let id = lease.id;
        observe::attempt(&lease);
        let Some(hold) = self.leases.hold(lease.clone(), asked_at, job) else {
            Box::pin(self.give_up(lease)).await;
            return Err(Refusal::InProgress { retry_after: RETRY_AFTER_MAX });
        };
        let context = Context::new(hold.held.clone(), self.calls.clone());
        // Called inside the guard: a panic before the first await is a panic of the run, too.
        match AssertUnwindSafe(async move { work(context).await }).catch_unwind().await {
            Ok(ended) => self.finish(job, hold, ended).await,
            Err(_panic) => {
                hold.held.report_uncertain(Reason::Panicked);
                let lease = &hold.held.lease;
                let abandon = || self.calls.store.abandon(lease, Reason::Panicked);
                let _ = self
                    .calls
                    .insist("abandon", self.calls.within(lease.length), RECORD_TRIES, abandon)
                    .await;
                self.waiters.wake(&id);
                Err(Refusal::Panicked { id })
            }
        }
    }

    /// Records the outcome, then answers.
    async fn finish<V>(
        self: &Arc<Self>,
        job: &Job,
        hold: Hold,
        ended: Ended<V>,
    ) -> Result<Execution<V>, Refusal> {
        let Ended { value, finish } = ended;
        let finish = finish.within(self.outcome_bytes_max(&job.policy));
        let started = self.facts.moment(&job.key.id);
        let fenced = self.record(job, &hold, &finish, started, RECORD_TRIES).await;
        observe::recorded_in(started.at.elapsed());
        if let (Finish::Uncertain(reason), Ok(Fenced::Applied) | Err(_)) = (&finish, &fenced) {
            hold.held.report_uncertain(*reason);
        }
        let recorded = match fenced {
            Ok(Fenced::Applied) => true,
            Ok(Fenced::Lost) => {
                hold.held.report_lost();
                if matches!(finish, Finish::Pin(_)) {
                    return Box::pin(self.truth(job)).await;
                }
                false
            }
            Err(error) => {
                tracing::error!(id = %job.key.id, %error, "outcome not recorded yet; trying on behind the answer");
                self.record_behind(job, hold, finish, started);
                false
            }
        };
        Ok(Execution::Ran { value, recorded })
    }

    /// The largest outcome that is kept: no more than the store takes, so that it never refuses what has happened.
    pub(crate) fn outcome_bytes_max(&self, policy: &Policy) -> usize {
        policy.outcome_bytes_max.min(self.calls.store.outcome_bytes_max())
    }

    /// Writes the outcome down. What the store finds too large although it did not say so is written down as not kept.
    ///
    /// The outcome was ready at `ended_at`: its retention counts from some moment after that, whichever try it was
    /// that the store applied.
    async fn record(
        &self,
        job: &Job,
        hold: &Hold,
        finish: &Finish,
        ended_at: Moment,
        tries: u32,
    ) -> Result<Fenced, StoreError> {
        let mut fenced = self.write(job, hold, finish, ended_at, tries).await;
        if matches!(&fenced, Err(error) if error.kind() == StoreErrorKind::TooLarge) {
            fenced = self.write(job, hold, &finish.clone().within(0), ended_at, tries).await;
        }
        self.waiters.wake(&hold.held.lease.id);
        fenced
    }

    async fn write(
        &self,
        job: &Job,
        hold: &Hold,
        finish: &Finish,
        ended_at: Moment,
        tries: u32,
    ) -> Result<Fenced, StoreError> {
        let lease = &hold.held.lease;
        let store = &self.calls.store;
        let retention = job.policy.retention;
        let within = self.calls.within(lease.length);
        match finish {
            Finish::Pin(recorded) => {
                let complete = || store.complete(lease, recorded, retention);
                let fenced = self.calls.insist("complete", within, tries, complete).await;
                if matches!(fenced, Ok(Fenced::Applied)) {
                    self.facts.keep(lease.id, job.fingerprint, recorded, ended_at, retention);
                }
                fenced
            }
            Finish::Release(answered) => {
                let release = || store.release(lease, answered.as_ref());
                self.calls.insist("release", within, tries, release).await
            }
            Finish::Uncertain(reason) => {
                let abandon = || store.abandon(lease, *reason);
                self.calls.insist("abandon", within, tries, abandon).await
            }
        }
    }

    /// Goes on recording after the caller was answered; the lease is renewed meanwhile.
    fn record_behind(self: &Arc<Self>, job: &Job, hold: Hold, finish: Finish, ended_at: Moment) {
        let engine = self.clone();
        let job = Job { key: job.key.clone(), reconcile: None, route: None, ..*job };
        self.tasks.spawn(async move {
            match engine.record(&job, &hold, &finish, ended_at, RECORD_TRIES_BEHIND).await {
                Ok(Fenced::Applied) => tracing::info!(id = %job.key.id, "outcome recorded after all"),
                Ok(Fenced::Lost) => hold.held.report_lost(),
                Err(error) => tracing::error!(id = %job.key.id, %error, "outcome never recorded"),
            }
        });
    }
}

impl Finish {
    /// The same, with an outcome that is larger than may be kept marked as such.
    fn within(self, bytes_max: usize) -> Self {
        match self {
            Self::Pin(recorded) => Self::Pin(kept(recorded, bytes_max)),
            // A tombstone is for people: what does not fit is left out.
            Self::Release(Some(answered)) if answered.len() > bytes_max => Self::Release(None),
            finish => finish,
        }
    }
}

/// The outcome, or that there was one where it is larger than may be kept.
fn kept(recorded: Recorded, bytes_max: usize) -> Recorded {
    if recorded.len() > bytes_max { not_kept(&recorded) } else { recorded }
}

/// That the operation ended, and how, without what it answered.
pub(crate) fn not_kept(recorded: &Recorded) -> Recorded {
    Recorded::new(recorded.class, Format::NOT_KEPT, Bytes::new())
}
