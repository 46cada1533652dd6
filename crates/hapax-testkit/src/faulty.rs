//! [`Faulty`]: a store that fails, stalls, panics, dies or lies about success, by [`Plan`].
//!
//! It injects faults between a caller and a store, and does not interpret calls.

mod plan;

use std::collections::BTreeMap;
use std::fmt;
use std::future::{Future, pending, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::{Either, select};
use hapax_core::{
    BoxFuture, Caching, Claim, ClaimRequest, Deleted, Fenced, Health, Lease, Lookup, Nonce, Page, Query,
    Reason, RecordId, Recorded, Settled, Settlement, Stats, Store, StoreError, StoreErrorKind, Swept,
};
use parking_lot::Mutex;
use tokio::sync::watch;

pub use plan::{Fault, Plan, Point};

use crate::op::Op;

/// A store between one process and its real store, that injects into each call what its [`Plan`] says.
///
/// Give each simulated process its own `Faulty` over one shared store: a [`Fault::Crash`] then kills one
/// process and leaves the store and the others alone. Clones share everything, so a test keeps one while the
/// engine owns another.
///
/// Every call suspends once before it reaches the store and once after, also without a fault, so that
/// dropping a future at each of its awaits has an effect even on a store that never waits.
///
/// ```
/// use std::sync::Arc;
/// use hapax_core::{ManualClock, Store};
/// use hapax_testkit::{Fault, Faulty, Op, Plan, ReferenceStore};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let store = Faulty::new(Arc::new(ReferenceStore::new(ManualClock::new())));
/// store.set_plan(Plan::new().at_nth(Op::Stats, 2, Fault::AnswerLost));
/// assert!(store.stats().await.is_ok());
/// assert!(store.stats().await.is_err_and(|error| error.is_unknown()));
/// assert_eq!(store.fired().len(), 1);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct Faulty {
    inner: Arc<dyn Store>,
    shared: Arc<Shared>,
}

/// A call at one of its two points, as an observer sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ObservedCall {
    /// The call's number since the plan was set, from 1.
    pub call: u64,
    /// The operation.
    pub op: Op,
    /// Its record, when it is about one.
    pub id: Option<RecordId>,
    /// Where the call is.
    pub point: Point,
    /// The fault that is about to be injected here.
    pub fault: Option<Fault>,
}

/// A fault that was injected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fired {
    /// The number of its call.
    pub call: u64,
    /// The operation.
    pub op: Op,
    /// The fault.
    pub fault: Fault,
}

type Observer = Arc<dyn Fn(&ObservedCall) + Send + Sync>;

struct Shared {
    log: Mutex<CallLog>,
    process: watch::Sender<ProcessState>,
}

#[derive(Default)]
struct CallLog {
    plan: Plan,
    calls: u64,
    calls_by_op: BTreeMap<Op, u64>,
    fired: Vec<Fired>,
    last_claim: Option<ClaimRequest>,
    observer: Option<Observer>,
}

/// What a suspended call waits for.
#[derive(Clone, Copy, Default)]
struct ProcessState {
    dead: bool,
    resumed: u64,
    drops_asked: u64,
    drops_done: u64,
}

/// One call in progress.
#[derive(Clone, Copy)]
struct Call {
    number: u64,
    op: Op,
    id: Option<RecordId>,
    fault: Option<Fault>,
}

impl Faulty {
    /// `inner`, without faults.
    pub fn new(inner: Arc<dyn Store>) -> Self {
        let log = Mutex::default();
        let process = watch::Sender::new(ProcessState::default());
        Self { inner, shared: Arc::new(Shared { log, process }) }
    }

    /// Replaces the plan. Calls and fired faults are counted from zero.
    pub fn set_plan(&self, plan: Plan) {
        let mut log = self.shared.log.lock();
        *log = CallLog { plan, observer: log.observer.take(), ..CallLog::default() };
    }

    /// Shows every call to `observer` at both of its points, just before its fault is injected.
    ///
    /// This is the place to move a clock at exactly one await. The observer must not call the store.
    pub fn observe(&self, observer: impl Fn(&ObservedCall) + Send + Sync + 'static) {
        self.shared.log.lock().observer = Some(Arc::new(observer));
    }

    /// How many calls have been made since the plan was set.
    pub fn calls(&self) -> u64 {
        self.shared.log.lock().calls
    }

    /// The faults that were injected since the plan was set, in order. A planned fault whose call was never made, or
    /// was dropped before it got there, is not among them.
    pub fn fired(&self) -> Vec<Fired> {
        self.shared.log.lock().fired.clone()
    }

    /// The last claim since the plan was set, whether it reached the store or not: to be repeated as one that arrives
    /// late.
    pub fn last_claim(&self) -> Option<ClaimRequest> {
        self.shared.log.lock().last_claim.clone()
    }

    /// Continues every stalled call.
    pub fn resume(&self) {
        self.shared.process.send_modify(|process| process.resumed += 1);
    }

    /// The process dies now: no call is answered or applied any more.
    pub fn crash(&self) {
        self.shared.process.send_modify(|process| process.dead = true);
    }

    /// Whether the process is dead.
    pub fn is_dead(&self) -> bool {
        self.shared.process.borrow().dead
    }

    /// Completes when the process dies, so that a simulation can drop its tasks.
    pub async fn crashed(&self) {
        self.wait_for(|process| process.dead).await;
    }

    /// Runs `caller` to its end, or drops it at a [`Fault::Drop`] and returns `None`.
    ///
    /// The call at which this happened continues if `caller` did not own it, as when an engine runs it in a task of
    /// its own.
    pub async fn drive<F: Future>(&self, caller: F) -> Option<F::Output> {
        let asked = self.shared.process.borrow().drops_asked;
        let mut caller = Box::pin(caller);
        let ended = {
            let drop_asked = pin!(self.wait_for(move |process| process.drops_asked > asked));
            match select(caller.as_mut(), drop_asked).await {
                Either::Left((output, _)) => Some(output),
                Either::Right(_) => None,
            }
        };
        drop(caller);
        if ended.is_none() {
            self.shared.process.send_modify(|process| process.drops_done = process.drops_asked);
        }
        ended
    }

    async fn wait_for(&self, reached: impl FnMut(&ProcessState) -> bool) {
        // The sender lives as long as `self` does, so waiting cannot fail.
        let _ = self.shared.process.subscribe().wait_for(reached).await;
    }

    fn begin(&self, op: Op, id: Option<RecordId>) -> Call {
        let mut log = self.shared.log.lock();
        log.calls += 1;
        let number = log.calls;
        let nth = log.calls_by_op.entry(op).or_default();
        *nth += 1;
        let nth = *nth;
        let fault = log.plan.fault(op, number, nth);
        Call { number, op, id, fault }
    }

    /// Passes one point of a call: suspends, shows it to the observer, injects the fault.
    async fn pass(&self, call: &Call, point: Point) -> Result<(), StoreError> {
        yield_once().await;
        self.stop_if_dead().await;
        let fault = call.fault.filter(|fault| fault.point() == point);
        self.show(call, point, fault);
        let failed = match fault {
            Some(fault) => self.strike(call, fault).await,
            None => Ok(()),
        };
        self.stop_if_dead().await;
        failed
    }

    fn show(&self, call: &Call, point: Point, fault: Option<Fault>) {
        let Call { number, op, id, .. } = *call;
        let observer = {
            let mut log = self.shared.log.lock();
            if let Some(fault) = fault {
                log.fired.push(Fired { call: number, op, fault });
            }
            log.observer.clone()
        };
        if let Some(observer) = observer {
            observer(&ObservedCall { call: number, op, id, point, fault });
        }
    }

    async fn strike(&self, call: &Call, fault: Fault) -> Result<(), StoreError> {
        match fault {
            Fault::ErrorBefore(kind) => return Err(StoreError::new(kind, call.op.name())),
            Fault::AnswerLost => return Err(StoreError::new(StoreErrorKind::Unknown, call.op.name())),
            Fault::Delay(_, span) => tokio::time::sleep(span).await,
            Fault::Stall(_) => {
                let resumed = self.shared.process.borrow().resumed;
                self.wait_for(move |process| process.resumed > resumed).await;
            }
            Fault::Drop(_) => {
                let mut mine = 0;
                self.shared.process.send_modify(|process| {
                    process.drops_asked += 1;
                    mine = process.drops_asked;
                });
                self.wait_for(move |process| process.drops_done >= mine).await;
            }
            Fault::Panic(_) => panic!("planned panic at store call {} ({})", call.number, call.op),
            Fault::Crash(_) => self.crash(),
        }
        Ok(())
    }

    async fn stop_if_dead(&self) {
        if self.is_dead() {
            pending::<()>().await;
        }
    }

    /// Makes one call of `inner`. It is made by a closure, not passed as a future: a store may begin its
    /// work before its future is polled.
    fn call<'a, T: Send + 'a>(
        &'a self,
        op: Op,
        id: Option<RecordId>,
        apply: impl FnOnce(&'a dyn Store) -> BoxFuture<'a, Result<T, StoreError>> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        Box::pin(async move {
            let call = self.begin(op, id);
            self.pass(&call, Point::Before).await?;
            let answer = apply(&*self.inner).await;
            self.pass(&call, Point::After).await?;
            answer
        })
    }
}

/// Suspends once and wakes itself, on any runtime.
async fn yield_once() {
    let mut yielded = false;
    poll_fn(|cx| {
        if yielded {
            return Poll::Ready(());
        }
        yielded = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

impl fmt::Debug for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faulty")
            .field("inner", &self.inner)
            .field("calls", &self.calls())
            .field("dead", &self.is_dead())
            .finish_non_exhaustive()
    }
}

impl Store for Faulty {
    fn claim<'a>(&'a self, ask: &'a ClaimRequest) -> BoxFuture<'a, Result<Claim, StoreError>> {
        self.shared.log.lock().last_claim = Some(ask.clone());
        self.call(Op::Claim, Some(ask.key.id), move |inner| inner.claim(ask))
    }

    fn renew<'a>(&'a self, lease: &'a Lease) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        self.call(Op::Renew, Some(lease.id), move |inner| inner.renew(lease))
    }

    fn complete<'a>(
        &'a self,
        lease: &'a Lease,
        done: &'a Recorded,
        retention: Duration,
    ) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        self.call(Op::Complete, Some(lease.id), move |inner| inner.complete(lease, done, retention))
    }

    fn release<'a>(
        &'a self,
        lease: &'a Lease,
        answered: Option<&'a Recorded>,
    ) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        self.call(Op::Release, Some(lease.id), move |inner| inner.release(lease, answered))
    }

    fn abandon<'a>(&'a self, lease: &'a Lease, reason: Reason) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        self.call(Op::Abandon, Some(lease.id), move |inner| inner.abandon(lease, reason))
    }

    fn settle<'a>(
        &'a self,
        id: &'a RecordId,
        settlement: &'a Settlement,
    ) -> BoxFuture<'a, Result<Settled, StoreError>> {
        self.call(Op::Settle, Some(*id), move |inner| inner.settle(id, settlement))
    }

    fn get<'a>(&'a self, id: &'a RecordId) -> BoxFuture<'a, Result<Lookup, StoreError>> {
        self.call(Op::Get, Some(*id), move |inner| inner.get(id))
    }

    fn list<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<Page, StoreError>> {
        self.call(Op::List, None, move |inner| inner.list(query))
    }

    fn delete<'a>(&'a self, id: &'a RecordId, nonce: Nonce) -> BoxFuture<'a, Result<Deleted, StoreError>> {
        self.call(Op::Delete, Some(*id), move |inner| inner.delete(id, nonce))
    }

    fn sweep(&self, batch_max: usize) -> BoxFuture<'_, Result<Swept, StoreError>> {
        self.call(Op::Sweep, None, move |inner| inner.sweep(batch_max))
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats, StoreError>> {
        self.call(Op::Stats, None, |inner| inner.stats())
    }

    fn health(&self) -> BoxFuture<'_, Result<Health, StoreError>> {
        self.call(Op::Health, None, |inner| inner.health())
    }

    fn outcome_bytes_max(&self) -> usize {
        self.inner.outcome_bytes_max()
    }

    /// No caching, even where the inner store would cache: every replay is a claim, which may fail.
    fn caching(&self) -> Caching {
        match self.inner.caching() {
            Caching::Needless => Caching::default(),
            caching => caching,
        }
    }

    /// Passed on unchanged: a notification is a hint that may be missing anyway.
    fn watch(&self, id: &RecordId) -> Option<BoxFuture<'static, ()>> {
        self.inner.watch(id)
    }
}
