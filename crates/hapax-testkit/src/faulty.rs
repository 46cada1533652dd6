//! [`Faulty`]: a store that fails, stalls, panics, dies or lies about success, by [`Plan`].
//!
//! It owns what goes wrong between a caller and a store. It knows nothing of what the calls mean.

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

/// A store between one process and its real store, that does to each call what its [`Plan`] says.
///
/// Give each simulated process its own `Faulty` over one shared store: a [`Fault::Crash`] then kills one
/// process and leaves the store and the others alone. Clones share everything, so a test keeps one while the
/// engine owns another.
///
/// Every call suspends once before it reaches the store and once after, also when nothing goes wrong, so that
/// dropping a future at each of its awaits means something even on a store that never waits.
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
pub struct Step {
    /// The call's number since the plan was set, from 1.
    pub call: u64,
    /// What was called.
    pub op: Op,
    /// For which record, when it is for one.
    pub id: Option<RecordId>,
    /// Where the call is.
    pub point: Point,
    /// What is about to go wrong here.
    pub fault: Option<Fault>,
}

/// A fault that struck.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fired {
    /// The number of the call that it struck.
    pub call: u64,
    /// What was called.
    pub op: Op,
    /// What happened.
    pub fault: Fault,
}

type Observer = Arc<dyn Fn(&Step) + Send + Sync>;

struct Shared {
    ledger: Mutex<Ledger>,
    life: watch::Sender<Life>,
}

#[derive(Default)]
struct Ledger {
    plan: Plan,
    calls: u64,
    calls_by_op: BTreeMap<Op, u64>,
    fired: Vec<Fired>,
    last_claim: Option<ClaimRequest>,
    observer: Option<Observer>,
}

/// What a resting call waits for.
#[derive(Clone, Copy, Default)]
struct Life {
    dead: bool,
    resumed: u64,
    drops_asked: u64,
    drops_done: u64,
}

/// One call on its way.
#[derive(Clone, Copy)]
struct Call {
    number: u64,
    op: Op,
    id: Option<RecordId>,
    fault: Option<Fault>,
}

impl Faulty {
    /// `inner`, and nothing goes wrong yet.
    pub fn new(inner: Arc<dyn Store>) -> Self {
        let ledger = Mutex::default();
        let life = watch::Sender::new(Life::default());
        Self { inner, shared: Arc::new(Shared { ledger, life }) }
    }

    /// From now on `plan` rules. Calls are counted anew, and so are the faults that fire.
    pub fn set_plan(&self, plan: Plan) {
        let mut ledger = self.shared.ledger.lock();
        *ledger = Ledger { plan, observer: ledger.observer.take(), ..Ledger::default() };
    }

    /// Shows every call to `observer` at both of its points, just before its fault strikes.
    ///
    /// This is the place to move a clock at exactly one await. The observer must not call the store.
    pub fn observe(&self, observer: impl Fn(&Step) + Send + Sync + 'static) {
        self.shared.ledger.lock().observer = Some(Arc::new(observer));
    }

    /// How many calls have been made since the plan was set.
    pub fn calls(&self) -> u64 {
        self.shared.ledger.lock().calls
    }

    /// The faults that struck since the plan was set, in order. A planned fault whose call was never made, or
    /// was dropped before it got there, is not among them.
    pub fn fired(&self) -> Vec<Fired> {
        self.shared.ledger.lock().fired.clone()
    }

    /// The last claim that was asked for since the plan was set, whether it reached the store or not: to be made as
    /// one that arrives late.
    pub fn last_claim(&self) -> Option<ClaimRequest> {
        self.shared.ledger.lock().last_claim.clone()
    }

    /// Lets every stalled call go on.
    pub fn resume(&self) {
        self.shared.life.send_modify(|life| life.resumed += 1);
    }

    /// The process dies now: no call answers any more, nothing more is applied.
    pub fn crash(&self) {
        self.shared.life.send_modify(|life| life.dead = true);
    }

    /// Whether the process is dead.
    pub fn is_dead(&self) -> bool {
        self.shared.life.borrow().dead
    }

    /// Ends when the process dies, so that whoever simulates it can drop what it was doing.
    pub async fn crashed(&self) {
        self.wait_for(|life| life.dead).await;
    }

    /// Runs `caller` to its end, or drops it where a [`Fault::Drop`] says so and answers `None`.
    ///
    /// The call at which this happened goes on afterwards if `caller` was not the one that owned it, as when an
    /// engine runs it in a task of its own.
    pub async fn drive<F: Future>(&self, caller: F) -> Option<F::Output> {
        let asked = self.shared.life.borrow().drops_asked;
        let mut caller = Box::pin(caller);
        let ended = {
            let drop_asked = pin!(self.wait_for(move |life| life.drops_asked > asked));
            match select(caller.as_mut(), drop_asked).await {
                Either::Left((output, _)) => Some(output),
                Either::Right(_) => None,
            }
        };
        drop(caller);
        if ended.is_none() {
            self.shared.life.send_modify(|life| life.drops_done = life.drops_asked);
        }
        ended
    }

    async fn wait_for(&self, reached: impl FnMut(&Life) -> bool) {
        // The sender lives as long as `self` does, so waiting cannot fail.
        let _ = self.shared.life.subscribe().wait_for(reached).await;
    }

    fn begin(&self, op: Op, id: Option<RecordId>) -> Call {
        let mut ledger = self.shared.ledger.lock();
        ledger.calls += 1;
        let number = ledger.calls;
        let nth = ledger.calls_by_op.entry(op).or_default();
        *nth += 1;
        let nth = *nth;
        let fault = ledger.plan.fault(op, number, nth);
        Call { number, op, id, fault }
    }

    /// Passes one point of a call: suspend, be seen, meet the fault.
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
            let mut ledger = self.shared.ledger.lock();
            if let Some(fault) = fault {
                ledger.fired.push(Fired { call: number, op, fault });
            }
            ledger.observer.clone()
        };
        if let Some(observer) = observer {
            observer(&Step { call: number, op, id, point, fault });
        }
    }

    async fn strike(&self, call: &Call, fault: Fault) -> Result<(), StoreError> {
        match fault {
            Fault::ErrorBefore(kind) => return Err(StoreError::new(kind, call.op.name())),
            Fault::AnswerLost => return Err(StoreError::new(StoreErrorKind::Unknown, call.op.name())),
            Fault::Delay(_, span) => tokio::time::sleep(span).await,
            Fault::Stall(_) => {
                let resumed = self.shared.life.borrow().resumed;
                self.wait_for(move |life| life.resumed > resumed).await;
            }
            Fault::Drop(_) => {
                let mut mine = 0;
                self.shared.life.send_modify(|life| {
                    life.drops_asked += 1;
                    mine = life.drops_asked;
                });
                self.wait_for(move |life| life.drops_done >= mine).await;
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

    /// Makes one call of `inner`. It is made by a closure, not handed over as a future: a store may begin its
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

/// Suspends once and asks to be polled again, on any runtime.
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
        self.shared.ledger.lock().last_claim = Some(ask.clone());
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

    /// Nothing is recalled here, also where the store within would: every replay is a claim, which may fail.
    fn caching(&self) -> Caching {
        match self.inner.caching() {
            Caching::Needless => Caching::default(),
            caching => caching,
        }
    }

    /// Passed on as it is: news is a hint that may fail to come anyway.
    fn watch(&self, id: &RecordId) -> Option<BoxFuture<'static, ()>> {
        self.inner.watch(id)
    }
}
