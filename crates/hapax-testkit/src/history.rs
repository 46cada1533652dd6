//! [`History`]: the calls of processes to a store, the answers, and the effects of handlers; and whether a store that
//! keeps the contract can have produced them.
//!
//! It owns the record of events. The order of calls is in `linear` and `belief`, the rules about effects and outcomes
//! are in `effects`, and the text of violations is in `timeline`.

mod belief;
mod effects;
mod linear;
mod recording;
mod timeline;

use std::collections::BTreeMap;
use std::sync::Arc;

use hapax_core::transition::{Answer, Command};
use hapax_core::{Clock, Fence, Lookup, RecordId, Recorded, StoreErrorKind, Timestamp};
use parking_lot::Mutex;

pub use recording::Recording;
pub use timeline::{Rule, Violation};

/// Everything that happened between some processes and one store. Clones share it.
///
/// Record through [`Recording`], add the effects of handlers with [`effect`](Self::effect) and the answers to callers
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
    log: Arc<Mutex<EventLog>>,
}

/// A call that a history can check.
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

/// A call that has been made and not yet answered.
#[derive(Debug)]
#[must_use]
pub struct Ticket(usize);

/// What [`History::check`] covered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Checked {
    /// Keys with at least one call.
    pub keys: usize,
    /// Calls that concern one of them, sweeps not counted.
    pub calls: usize,
    /// Effects that handlers reported.
    pub effects: usize,
    /// Outcomes that callers got.
    pub outcomes: usize,
}

#[derive(Debug, Default)]
struct EventLog {
    events: u64,
    calls: Vec<Call>,
    effects: Vec<Effect>,
    outcomes: Vec<GivenOutcome>,
}

/// A position in the order of events, and the time on the store's clock.
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
    end: Option<(Moment, CallEnd)>,
}

/// How a call ended, for its caller.
#[derive(Clone, Debug)]
enum CallEnd {
    Answered(Reply),
    /// It failed and was not applied.
    NotApplied,
    /// It is unknown whether it was or will be applied.
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
struct GivenOutcome {
    process: Arc<str>,
    id: RecordId,
    recorded: Recorded,
    when: Moment,
}

impl History {
    /// An empty history of a store whose clock is `clock`.
    ///
    /// It must be the clock by which the store evaluates leases: spans between events are compared with it.
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

    /// The call is answered now, or fails.
    ///
    /// A call for which this is never called counts as one that may take effect at any later time, or never; so
    /// does one that failed with [`StoreErrorKind::Unknown`].
    pub fn answer(&self, ticket: Ticket, reply: Result<Reply, StoreErrorKind>) {
        let mut log = self.log.lock();
        let answered = self.moment(&mut log);
        let end = match reply {
            Ok(reply) => CallEnd::Answered(reply),
            Err(StoreErrorKind::Unknown) => CallEnd::Unknown,
            Err(_) => CallEnd::NotApplied,
        };
        log.calls[ticket.0].end = Some((answered, end));
    }

    /// The handler of `process` takes the operation's effect now, under this fence.
    pub fn effect(&self, process: &str, id: RecordId, fence: Fence) {
        let mut log = self.log.lock();
        let when = self.moment(&mut log);
        log.effects.push(Effect { process: process.into(), id, fence, when });
    }

    /// `process` gives a caller the operation's outcome now.
    pub fn outcome(&self, process: &str, id: RecordId, recorded: &Recorded) {
        let mut log = self.log.lock();
        let when = self.moment(&mut log);
        log.outcomes.push(GivenOutcome { process: process.into(), id, recorded: recorded.clone(), when });
    }

    /// Checks all keys, in the order of their ids.
    ///
    /// For each key: its calls are linearisable against [`transition::decide`](hapax_core::transition::decide);
    /// no fence has two effects; every effect was claimed before it happened and not yet ended; a second effect is explained by a
    /// release, a settlement, a permitted takeover or the end of the record; all outcomes given while the record
    /// was kept are one, and each was recorded.
    ///
    /// # Errors
    /// The first violation found, with the calls of its key.
    pub fn check(&self) -> Result<Checked, Box<Violation>> {
        let log = self.log.lock();
        let mut checked =
            Checked { effects: log.effects.len(), outcomes: log.outcomes.len(), ..Checked::default() };
        for (id, events) in log.by_key() {
            checked.keys += 1;
            checked.calls += events.calls.iter().filter(|call| call.request != Request::Sweep).count();
            // Effects first: they are the worse fault, and a wrong store usually shows both.
            effects::check(id, &events)?;
            linear::check(id, &events.calls)?;
        }
        Ok(checked)
    }

    fn moment(&self, log: &mut EventLog) -> Moment {
        log.events += 1;
        Moment { order: log.events, at: self.clock.now() }
    }
}

/// The events of one key, each kind in the order in which it happened.
#[derive(Default)]
struct KeyEvents<'a> {
    calls: Vec<&'a Call>,
    effects: Vec<&'a Effect>,
    outcomes: Vec<&'a GivenOutcome>,
}

impl EventLog {
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
            Some((_, CallEnd::Answered(Reply::Answer(answer)))) => Some(answer),
            _ => None,
        }
    }

    /// Whether the caller never learnt the outcome of the call.
    fn is_open(&self) -> bool {
        matches!(&self.end, None | Some((_, CallEnd::Unknown)))
    }
}
