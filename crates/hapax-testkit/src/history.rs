//! [`History`]: what was asked of a store, what it answered and what was done because of it; and whether all of
//! that can be true of a store that keeps the contract.
//!
//! It owns the record of events and the verdict. How calls are put in order is in `linear` and `belief`, the
//! rules about effects and outcomes are in `effects`, and the words for people in `story`.

mod belief;
mod effects;
mod linear;
mod recording;
mod story;

use std::collections::BTreeMap;
use std::sync::Arc;

use hapax_core::transition::{Answer, Command};
use hapax_core::{Clock, Fence, Lookup, RecordId, Recorded, StoreErrorKind, Timestamp};
use parking_lot::Mutex;

pub use recording::Recording;
pub use story::{Rule, Violation};

/// Everything that happened between some processes and one store. Clones share it.
///
/// Record through [`Recording`], add what handlers did with [`effect`](Self::effect) and what callers were told
/// with [`outcome`](Self::outcome), then [`check`](Self::check).
///
/// ```
/// use std::sync::Arc;
/// use hapax_core::{ManualClock, Nonce, RecordId, Store};
/// use hapax_testkit::{History, Recording, ReferenceStore};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let clock = ManualClock::new();
/// let history = History::new(clock.clone());
/// let store = Recording::new(&history, "first", Arc::new(ReferenceStore::new(clock)));
/// let id = RecordId::from_bytes([7; 32]);
/// store.get(&id).await?;
/// store.delete(&id, Nonce::random()).await?;
/// let checked = history.check()?;
/// assert_eq!((checked.keys, checked.calls), (1, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct History {
    clock: Arc<dyn Clock>,
    log: Arc<Mutex<Log>>,
}

/// A question that a history can judge.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    /// Any command about one record.
    Command(Command),
    /// A read of one record.
    Get(RecordId),
    /// A sweep, which may concern any record.
    Sweep,
}

/// What a store answered to a [`Request`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    /// To a command.
    Answer(Answer),
    /// To a read.
    Lookup(Lookup),
    /// To a sweep: the counts say nothing about any one record.
    Swept,
}

/// Names a call that has been made and not yet answered.
#[derive(Debug)]
#[must_use]
pub struct Ticket(usize);

/// What [`History::check`] looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Checked {
    /// Keys with at least one call.
    pub keys: usize,
    /// Calls that concern one of them, sweeps not counted.
    pub calls: usize,
    /// Effects that handlers reported.
    pub effects: usize,
    /// Outcomes that callers were told.
    pub outcomes: usize,
}

#[derive(Debug, Default)]
struct Log {
    events: u64,
    calls: Vec<Call>,
    effects: Vec<Effect>,
    outcomes: Vec<Outcome>,
}

/// A place in the order of events, and the time on the store's clock.
#[derive(Clone, Copy, Debug)]
struct Moment {
    order: u64,
    at: Timestamp,
}

#[derive(Clone, Debug)]
struct Call {
    process: Arc<str>,
    request: Request,
    invoked: Moment,
    end: Option<(Moment, End)>,
}

/// How a call ended, for its caller.
#[derive(Clone, Debug)]
enum End {
    Answered(Reply),
    /// It failed and was certainly not applied.
    NotApplied,
    /// Nobody knows whether it was applied, or will be.
    Unknown,
}

#[derive(Clone, Debug)]
struct Effect {
    process: Arc<str>,
    id: RecordId,
    fence: Fence,
    when: Moment,
}

#[derive(Clone, Debug)]
struct Outcome {
    process: Arc<str>,
    id: RecordId,
    recorded: Recorded,
    when: Moment,
}

impl History {
    /// An empty history of a store whose clock is `clock`.
    ///
    /// It must be the very clock by which the store judges leases: spans between events are held against it.
    pub fn new(clock: impl Clock) -> Self {
        Self { clock: Arc::new(clock), log: Arc::default() }
    }

    /// `process` makes a call now.
    pub fn invoke(&self, process: &str, request: Request) -> Ticket {
        let mut log = self.log.lock();
        let invoked = self.moment(&mut log);
        log.calls.push(Call { process: process.into(), request, invoked, end: None });
        Ticket(log.calls.len() - 1)
    }

    /// The call was answered just now, or failed.
    ///
    /// A call for which this is never called counts as one that may take effect at any later time, or never; so
    /// does one that failed with [`StoreErrorKind::Unknown`].
    pub fn answer(&self, ticket: Ticket, reply: Result<Reply, StoreErrorKind>) {
        let mut log = self.log.lock();
        let answered = self.moment(&mut log);
        let end = match reply {
            Ok(reply) => End::Answered(reply),
            Err(StoreErrorKind::Unknown) => End::Unknown,
            Err(_) => End::NotApplied,
        };
        log.calls[ticket.0].end = Some((answered, end));
    }

    /// The handler of `process` does now what the operation is for, under this fence.
    pub fn effect(&self, process: &str, id: RecordId, fence: Fence) {
        let mut log = self.log.lock();
        let when = self.moment(&mut log);
        log.effects.push(Effect { process: process.into(), id, fence, when });
    }

    /// `process` tells a caller now that this is the operation's one outcome.
    pub fn outcome(&self, process: &str, id: RecordId, recorded: &Recorded) {
        let mut log = self.log.lock();
        let when = self.moment(&mut log);
        log.outcomes.push(Outcome { process: process.into(), id, recorded: recorded.clone(), when });
    }

    /// Judges all keys, one by one in the order of their ids.
    ///
    /// For each key: its calls are linearisable against [`transition::decide`](hapax_core::transition::decide);
    /// no fence has two effects; every effect was claimed before it happened and not yet ended; a second effect is explained by a
    /// release, a settlement, a permitted takeover or the end of the record; all outcomes told while the record
    /// was kept are one, and each was recorded.
    ///
    /// # Errors
    /// The first violation found, told with the calls of its key.
    pub fn check(&self) -> Result<Checked, Box<Violation>> {
        let log = self.log.lock();
        let mut checked =
            Checked { effects: log.effects.len(), outcomes: log.outcomes.len(), ..Checked::default() };
        for (id, events) in log.by_key() {
            checked.keys += 1;
            checked.calls += events.calls.iter().filter(|call| call.request != Request::Sweep).count();
            // Two effects are the worse news, and a store that is wrong usually shows both.
            effects::check(id, &events)?;
            linear::check(id, &events.calls)?;
        }
        Ok(checked)
    }

    fn moment(&self, log: &mut Log) -> Moment {
        log.events += 1;
        Moment { order: log.events, at: self.clock.now() }
    }
}

/// What concerns one key, each kind in the order in which it happened.
#[derive(Default)]
struct KeyEvents<'a> {
    calls: Vec<&'a Call>,
    effects: Vec<&'a Effect>,
    outcomes: Vec<&'a Outcome>,
}

impl Log {
    fn by_key(&self) -> BTreeMap<RecordId, KeyEvents<'_>> {
        let mut keys: BTreeMap<RecordId, KeyEvents<'_>> = BTreeMap::new();
        for id in self.calls.iter().filter_map(|call| call.request.id()) {
            keys.entry(*id).or_default();
        }
        for effect in &self.effects {
            keys.entry(effect.id).or_default().effects.push(effect);
        }
        for outcome in &self.outcomes {
            keys.entry(outcome.id).or_default().outcomes.push(outcome);
        }
        for call in &self.calls {
            match call.request.id() {
                Some(id) => keys.entry(*id).or_default().calls.push(call),
                None => keys.values_mut().for_each(|events| events.calls.push(call)),
            }
        }
        keys
    }
}

impl Request {
    /// Which record the request is about, when it is about one.
    pub fn id(&self) -> Option<&RecordId> {
        match self {
            Self::Command(command) => Some(command.id()),
            Self::Get(id) => Some(id),
            Self::Sweep => None,
        }
    }
}

impl Call {
    fn command(&self) -> Option<&Command> {
        match &self.request {
            Request::Command(command) => Some(command),
            Request::Get(_) | Request::Sweep => None,
        }
    }

    /// The answer, when the caller got one.
    fn answer(&self) -> Option<&Answer> {
        match &self.end {
            Some((_, End::Answered(Reply::Answer(answer)))) => Some(answer),
            _ => None,
        }
    }

    /// Whether the caller never learnt what became of the call.
    fn is_open(&self) -> bool {
        matches!(&self.end, None | Some((_, End::Unknown)))
    }
}
