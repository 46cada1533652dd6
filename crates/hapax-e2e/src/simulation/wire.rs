//! [`Wire`]: the network between one process and the shared store.
//!
//! A call may be delivered late, also after its caller was dropped, and may be delivered twice. That is what a network, a
//! driver's own retry and a dropped future do to a real store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use hapax_core::transition::{Answer, Command};
use hapax_core::{
    BoxFuture, Claim, ClaimRequest, Deleted, Fenced, Health, Lease, Lookup, Nonce, Page, Query, Reason,
    RecordId, Recorded, Settled, Settlement, Stats, Store, StoreError, StoreErrorKind, Swept,
};
use hapax_testkit::{History, Random, Reply, Request, Ticket};
use parking_lot::Mutex;
use tokio::time::sleep;

use super::LATE;
use super::event::{FaultKind, FaultSite};
use super::gate::Gate;

/// One process's connection to the store. Clones are the same wire.
#[derive(Clone, Debug)]
pub struct Wire {
    gate: Arc<Gate>,
    history: Option<History>,
    state: Arc<WireState>,
}

#[derive(Debug, Default)]
struct WireState {
    calls: AtomicU64,
    plan: Mutex<DeliveryPlan>,
    is_fired: AtomicBool,
}

#[derive(Debug, Default)]
enum DeliveryPlan {
    #[default]
    Straight,
    LateAt(u64),
    ByChance {
        random: Random,
        per_mille: u32,
    },
}

/// How one call is delivered.
#[derive(Clone, Copy)]
enum Delivery {
    Straight,
    Late(Duration),
    Twice(Duration),
}

impl Wire {
    /// A wire that delivers every call immediately, and records it in `history` if there is one.
    pub fn new(gate: Arc<Gate>, history: Option<History>) -> Self {
        Self { gate, history, state: Arc::default() }
    }

    /// The nth call from now is delivered later than a lease.
    pub fn late_at(&self, nth: u64) {
        *self.state.plan.lock() = DeliveryPlan::LateAt(nth);
    }

    /// About so many calls in a thousand are delivered late or twice.
    pub fn by_chance(&self, seed: u64, per_mille: u32) {
        *self.state.plan.lock() = DeliveryPlan::ByChance { random: Random::seeded(seed), per_mille };
    }

    /// Delivers every call immediately from now on.
    pub fn heal(&self) {
        *self.state.plan.lock() = DeliveryPlan::Straight;
    }

    /// Whether a call was late or doubled.
    pub fn is_fired(&self) -> bool {
        self.state.is_fired.load(Ordering::Relaxed)
    }

    fn delivery(&self) -> Delivery {
        let call = self.state.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let delivery = match &mut *self.state.plan.lock() {
            DeliveryPlan::LateAt(nth) if *nth == call => Delivery::Late(LATE),
            DeliveryPlan::ByChance { random, per_mille } => by_chance(random, *per_mille),
            DeliveryPlan::LateAt(_) | DeliveryPlan::Straight => Delivery::Straight,
        };
        if !matches!(delivery, Delivery::Straight) {
            self.state.is_fired.store(true, Ordering::Relaxed);
            self.gate.traced.fault_injected(self.gate.process, FaultKind::Delay, FaultSite::Wire);
        }
        delivery
    }

    async fn carry(&self, command: Command) -> Result<Answer, StoreError> {
        self.gate.open().await;
        let wire_call = self.wire_call(command);
        let answer = match self.delivery() {
            Delivery::Straight => wire_call.deliver(),
            Delivery::Late(span) => {
                let landed = tokio::spawn(async move {
                    sleep(span).await;
                    wire_call.deliver()
                });
                landed.await.unwrap_or_else(|_| Err(StoreError::new(StoreErrorKind::Unknown, "carry")))
            }
            Delivery::Twice(span) => {
                let copy = self.wire_call(wire_call.command.clone());
                tokio::spawn(async move {
                    sleep(span).await;
                    copy.deliver()
                });
                wire_call.deliver()
            }
        };
        self.gate.open().await;
        answer
    }

    /// A call that has left the process.
    fn wire_call(&self, command: Command) -> WireCall {
        let recorded = self.begin(|| Request::Command(command.clone()));
        WireCall { gate: self.gate.clone(), command, recorded }
    }

    fn begin(&self, request: impl FnOnce() -> Request) -> Option<RecordedCall> {
        let history = self.history.clone()?;
        let ticket = history.invoke(&self.gate.process.to_string(), request());
        Some(RecordedCall { history, ticket })
    }

    async fn fenced(&self, command: Command) -> Result<Fenced, StoreError> {
        match self.carry(command).await? {
            Answer::Fenced(fenced) => Ok(fenced),
            _ => Err(mismatched_answer()),
        }
    }
}

/// A call in flight; it may be delivered after its caller was dropped.
struct WireCall {
    gate: Arc<Gate>,
    command: Command,
    recorded: Option<RecordedCall>,
}

/// A call whose begin is recorded.
struct RecordedCall {
    history: History,
    ticket: Ticket,
}

impl WireCall {
    fn deliver(self) -> Result<Answer, StoreError> {
        let answer = self.gate.traced.apply(self.gate.process, &self.command);
        if let Some(recorded) = self.recorded {
            recorded.end(answer.as_ref().map(|answer| Reply::Answer(answer.clone())));
        }
        answer
    }
}

impl RecordedCall {
    fn end(self, reply: Result<Reply, &StoreError>) {
        self.history.answer(self.ticket, reply.map_err(StoreError::kind));
    }
}

fn by_chance(random: &mut Random, per_mille: u32) -> Delivery {
    if !random.chance(per_mille) {
        return Delivery::Straight;
    }
    let span = LATE * random.below(100) as u32 / 100 + Duration::from_millis(1);
    if random.chance(500) { Delivery::Twice(span) } else { Delivery::Late(span) }
}

fn mismatched_answer() -> StoreError {
    StoreError::new(StoreErrorKind::Incompatible, "carry").with_source("the answer to another command")
}

fn not_simulated<'a, T: 'a>(op: &'static str) -> BoxFuture<'a, Result<T, StoreError>> {
    Box::pin(async move { Err(StoreError::new(StoreErrorKind::Invalid, op).with_source("not simulated")) })
}

impl Store for Wire {
    fn claim<'a>(&'a self, ask: &'a ClaimRequest) -> BoxFuture<'a, Result<Claim, StoreError>> {
        Box::pin(async move {
            match self.carry(Command::Claim(ask.clone())).await? {
                Answer::Claim(claim) => Ok(claim),
                _ => Err(mismatched_answer()),
            }
        })
    }

    fn renew<'a>(&'a self, lease: &'a Lease) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        Box::pin(self.fenced(Command::Renew(lease.clone())))
    }

    fn complete<'a>(
        &'a self,
        lease: &'a Lease,
        done: &'a Recorded,
        retention: Duration,
    ) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        let (lease, done) = (lease.clone(), done.clone());
        Box::pin(self.fenced(Command::Complete { lease, done, retention }))
    }

    fn release<'a>(
        &'a self,
        lease: &'a Lease,
        answered: Option<&'a Recorded>,
    ) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        let (lease, answered) = (lease.clone(), answered.cloned());
        Box::pin(self.fenced(Command::Release { lease, answered }))
    }

    fn abandon<'a>(&'a self, lease: &'a Lease, reason: Reason) -> BoxFuture<'a, Result<Fenced, StoreError>> {
        Box::pin(self.fenced(Command::Abandon { lease: lease.clone(), reason }))
    }

    fn settle<'a>(
        &'a self,
        id: &'a RecordId,
        settlement: &'a Settlement,
    ) -> BoxFuture<'a, Result<Settled, StoreError>> {
        Box::pin(async move {
            let settlement = settlement.clone();
            match self.carry(Command::Settle { id: *id, settlement }).await? {
                Answer::Settled(settled) => Ok(settled),
                _ => Err(mismatched_answer()),
            }
        })
    }

    fn get<'a>(&'a self, id: &'a RecordId) -> BoxFuture<'a, Result<Lookup, StoreError>> {
        Box::pin(async move {
            self.gate.open().await;
            let recorded = self.begin(|| Request::Get(*id));
            let found = self.gate.traced.get(id);
            if let Some(recorded) = recorded {
                recorded.end(found.as_ref().map(|found| Reply::Lookup(found.clone())));
            }
            self.gate.open().await;
            found
        })
    }

    fn list<'a>(&'a self, _query: &'a Query) -> BoxFuture<'a, Result<Page, StoreError>> {
        not_simulated("list")
    }

    fn delete<'a>(&'a self, _id: &'a RecordId, _nonce: Nonce) -> BoxFuture<'a, Result<Deleted, StoreError>> {
        not_simulated("delete")
    }

    fn sweep(&self, batch_max: usize) -> BoxFuture<'_, Result<Swept, StoreError>> {
        Box::pin(async move {
            self.gate.open().await;
            let recorded = self.begin(|| Request::Sweep);
            let swept = self.gate.traced.sweep(self.gate.process, batch_max);
            if let Some(recorded) = recorded {
                recorded.end(swept.as_ref().map(|_| Reply::Swept));
            }
            swept
        })
    }

    fn stats(&self) -> BoxFuture<'_, Result<Stats, StoreError>> {
        not_simulated("stats")
    }

    fn health(&self) -> BoxFuture<'_, Result<Health, StoreError>> {
        not_simulated("health")
    }
}
