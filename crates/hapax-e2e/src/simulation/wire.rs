//! [`Wire`]: the way from one process to the shared store.
//!
//! A call on the wire may land late, also after nobody waits for it any more, and may land twice. That is what a
//! network, a driver's own retry and a dropped future do to a real store.

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
use super::event::{Kind, Place};
use super::gate::Gate;

/// One process's way to the store. Clones are the same wire.
#[derive(Clone, Debug)]
pub struct Wire {
    gate: Arc<Gate>,
    history: Option<History>,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    calls: AtomicU64,
    fates: Mutex<Fates>,
    is_fired: AtomicBool,
}

#[derive(Debug, Default)]
enum Fates {
    #[default]
    Straight,
    LateAt(u64),
    ByChance {
        random: Random,
        per_mille: u32,
    },
}

/// What becomes of one call on the wire.
#[derive(Clone, Copy)]
enum Fate {
    Straight,
    Late(Duration),
    Twice(Duration),
}

impl Wire {
    /// A wire on which every call goes straight through, and is written down in `history` if there is one.
    pub fn new(gate: Arc<Gate>, history: Option<History>) -> Self {
        Self { gate, history, state: Arc::default() }
    }

    /// The nth call from now lands later than a lease.
    pub fn late_at(&self, nth: u64) {
        *self.state.fates.lock() = Fates::LateAt(nth);
    }

    /// About so many calls in a thousand land late or twice.
    pub fn by_chance(&self, seed: u64, per_mille: u32) {
        *self.state.fates.lock() = Fates::ByChance { random: Random::seeded(seed), per_mille };
    }

    /// From here on every call goes straight through.
    pub fn heal(&self) {
        *self.state.fates.lock() = Fates::Straight;
    }

    /// Whether a call was late or doubled.
    pub fn is_fired(&self) -> bool {
        self.state.is_fired.load(Ordering::Relaxed)
    }

    fn fate(&self) -> Fate {
        let call = self.state.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let fate = match &mut *self.state.fates.lock() {
            Fates::LateAt(nth) if *nth == call => Fate::Late(LATE),
            Fates::ByChance { random, per_mille } => by_chance(random, *per_mille),
            Fates::LateAt(_) | Fates::Straight => Fate::Straight,
        };
        if !matches!(fate, Fate::Straight) {
            self.state.is_fired.store(true, Ordering::Relaxed);
            self.gate.ground.struck(self.gate.process, Kind::Delay, Place::Wire);
        }
        fate
    }

    async fn carry(&self, command: Command) -> Result<Answer, StoreError> {
        self.gate.open().await;
        let landing = self.landing(command);
        let answer = match self.fate() {
            Fate::Straight => landing.land(),
            Fate::Late(span) => {
                let landed = tokio::spawn(async move {
                    sleep(span).await;
                    landing.land()
                });
                landed.await.unwrap_or_else(|_| Err(StoreError::new(StoreErrorKind::Unknown, "carry")))
            }
            Fate::Twice(span) => {
                let copy = self.landing(landing.command.clone());
                tokio::spawn(async move {
                    sleep(span).await;
                    copy.land()
                });
                landing.land()
            }
        };
        self.gate.open().await;
        answer
    }

    /// A call that has left the process.
    fn landing(&self, command: Command) -> Landing {
        let note = self.begin(|| Request::Command(command.clone()));
        Landing { gate: self.gate.clone(), command, note }
    }

    fn begin(&self, request: impl FnOnce() -> Request) -> Option<Note> {
        let history = self.history.clone()?;
        let ticket = history.invoke(&self.gate.process.to_string(), request());
        Some(Note { history, ticket })
    }

    async fn fenced(&self, command: Command) -> Result<Fenced, StoreError> {
        match self.carry(command).await? {
            Answer::Fenced(fenced) => Ok(fenced),
            _ => Err(not_its_answer()),
        }
    }
}

/// A call on its way; it may land when nobody waits for it any more.
struct Landing {
    gate: Arc<Gate>,
    command: Command,
    note: Option<Note>,
}

/// A call that the history has seen begin.
struct Note {
    history: History,
    ticket: Ticket,
}

impl Landing {
    fn land(self) -> Result<Answer, StoreError> {
        let answer = self.gate.ground.apply(self.gate.process, &self.command);
        if let Some(note) = self.note {
            note.end(answer.as_ref().map(|answer| Reply::Answer(answer.clone())));
        }
        answer
    }
}

impl Note {
    fn end(self, reply: Result<Reply, &StoreError>) {
        self.history.answer(self.ticket, reply.map_err(StoreError::kind));
    }
}

fn by_chance(random: &mut Random, per_mille: u32) -> Fate {
    if !random.chance(per_mille) {
        return Fate::Straight;
    }
    let span = LATE * random.below(100) as u32 / 100 + Duration::from_millis(1);
    if random.chance(500) { Fate::Twice(span) } else { Fate::Late(span) }
}

fn not_its_answer() -> StoreError {
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
                _ => Err(not_its_answer()),
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
                _ => Err(not_its_answer()),
            }
        })
    }

    fn get<'a>(&'a self, id: &'a RecordId) -> BoxFuture<'a, Result<Lookup, StoreError>> {
        Box::pin(async move {
            self.gate.open().await;
            let note = self.begin(|| Request::Get(*id));
            let found = self.gate.ground.get(id);
            if let Some(note) = note {
                note.end(found.as_ref().map(|found| Reply::Lookup(found.clone())));
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
            let note = self.begin(|| Request::Sweep);
            let swept = self.gate.ground.sweep(self.gate.process, batch_max);
            if let Some(note) = note {
                note.end(swept.as_ref().map(|_| Reply::Swept));
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
