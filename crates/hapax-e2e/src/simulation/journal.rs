//! [`Ground`]: what all simulated processes stand on, the store, its clock and the journal of what happened.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::FutureExt;
use hapax::MemoryStore;
use hapax_core::transition::{self, Command};
use hapax_core::{
    BoxFuture, Claim, Fence, Fenced, Fingerprint, Key, Lookup, Nonce, Record, RecordId, Recorded, Scope,
    ScopedKey, Settled, Store, StoreError, Swept, Verdict,
};
use parking_lot::Mutex;

use super::clock::{SimClock, millis};
use super::event::{
    Answer, AttemptId, CallId, Ending, Entry, Event, KeyId, Kind, Place, ProcessId, RunId, Step,
};

/// The operation that every simulated call is about.
pub const SCOPE: &str = "pay";

/// One shared store, its clock, and everything that was seen to happen.
#[derive(Debug)]
pub struct Ground {
    /// The store's clock.
    pub clock: SimClock,
    store: MemoryStore,
    keys: Vec<RecordId>,
    /// Of input 0; there is only one other.
    first_input: Fingerprint,
    book: Mutex<Book>,
}

#[derive(Debug, Default)]
struct Book {
    entries: Vec<Entry>,
    names: HashMap<Nonce, AttemptId>,
    owners: Vec<Option<ProcessId>>,
    runs: Vec<Run>,
    /// What each call asks for.
    inputs: Vec<u8>,
    processes: u32,
    /// Attempts that got the key again after their run had ended, by a copy of their claim that landed late.
    orphans: Vec<AttemptId>,
    dead: Vec<ProcessId>,
    /// Drained to the end.
    done: Vec<ProcessId>,
    fired: [u64; Kind::ALL.len()],
}

/// What is known of one run.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// For which key.
    pub key: KeyId,
    /// For what input.
    pub input: u8,
    /// By which attempt.
    pub attempt: AttemptId,
    /// When its effect happened, on the store's clock.
    pub happened_ms: Option<u64>,
    /// How it ended.
    pub ended: Option<Ending>,
}

impl Ground {
    /// An empty store and an empty journal, for this many keys. To be made inside the simulated runtime.
    pub fn new(keys: u32) -> Arc<Self> {
        let clock = SimClock::new();
        let store = MemoryStore::with_clock(clock.clone());
        let keys = (0..keys)
            .map(|key| {
                let key = Key::new(key_name(KeyId(key))).expect("a short word is a key");
                ScopedKey::new(Scope::from(SCOPE), &key).id
            })
            .collect();
        let first_input = Fingerprint::builder().json("input", b"0").build();
        Arc::new(Self { clock, store, keys, first_input, book: Mutex::default() })
    }

    /// Every key.
    pub fn keys(&self) -> impl Iterator<Item = KeyId> + use<> {
        (0..self.keys.len() as u32).map(KeyId)
    }

    /// Notes what happened.
    pub fn note(&self, event: Event) {
        self.book.lock().note(self.clock.ms(), event);
    }

    /// Notes a fault that struck.
    pub fn struck(&self, process: ProcessId, kind: Kind, place: Place) {
        let mut book = self.book.lock();
        book.fired[kind as usize] += 1;
        book.note(self.clock.ms(), Event::Struck { process, kind, place });
    }

    /// A new process begins.
    pub fn opened(&self) -> ProcessId {
        let mut book = self.book.lock();
        let process = ProcessId(book.processes);
        book.processes += 1;
        book.note(self.clock.ms(), Event::Opened { process });
        process
    }

    /// A process died.
    pub fn died(&self, process: ProcessId) {
        let mut book = self.book.lock();
        book.dead.push(process);
        book.note(self.clock.ms(), Event::Crashed { process });
    }

    /// Everything that a process did is done.
    pub fn done(&self, process: ProcessId) {
        self.book.lock().done.push(process);
    }

    /// A caller asks.
    pub fn asked(
        &self,
        process: ProcessId,
        key: KeyId,
        input: u8,
        patience_ms: u64,
        has_deadline: bool,
    ) -> CallId {
        let mut book = self.book.lock();
        let call = CallId(book.inputs.len() as u32);
        book.inputs.push(input);
        book.note(self.clock.ms(), Event::Asked { call, process, key, input, patience_ms, has_deadline });
        call
    }

    /// A handler starts.
    pub fn started(&self, call: CallId, process: ProcessId, key: KeyId, fence: Fence) -> RunId {
        let mut book = self.book.lock();
        let attempt = book.name(fence.nonce);
        let run = RunId(book.runs.len() as u32);
        let input = book.inputs[call.index()];
        book.runs.push(Run { key, input, attempt, happened_ms: None, ended: None });
        let number = fence.attempt;
        book.note(self.clock.ms(), Event::Started { run, call, process, key, attempt, number });
        run
    }

    /// A handler's effect happens.
    pub fn happened(&self, run: RunId) {
        let mut book = self.book.lock();
        let at_ms = self.clock.ms();
        book.runs[run.index()].happened_ms = Some(at_ms);
        book.note(at_ms, Event::Happened { run });
    }

    /// A handler ends.
    pub fn ended(&self, run: RunId, ending: Ending) {
        let mut book = self.book.lock();
        book.runs[run.index()].ended = Some(ending);
        book.note(self.clock.ms(), Event::Ended { run, ending });
    }

    /// How many faults of each kind struck.
    pub fn fired(&self) -> [u64; Kind::ALL.len()] {
        self.book.lock().fired
    }

    /// Everything that happened so far.
    pub fn entries(&self) -> Vec<Entry> {
        self.book.lock().entries.clone()
    }

    /// What callers were told, in the order in which they asked.
    pub fn answers(&self) -> Vec<Option<Answer>> {
        let book = self.book.lock();
        let mut answers = vec![None; book.inputs.len()];
        for entry in &book.entries {
            if let Event::Answered { call, answer } = entry.event {
                answers[call.index()] = Some(answer);
            }
        }
        answers
    }

    /// The record of a key as it lies in the store.
    pub fn record(&self, key: KeyId) -> Option<Box<Record>> {
        match now(self.store.get(&self.keys[key.index()])) {
            Ok(Lookup::Found { record, .. }) => Some(record),
            _ => None,
        }
    }

    /// What somebody who can see everything knows about the attempt that holds an uncertain record; nothing
    /// while that attempt may still act.
    ///
    /// An operator who says "not applied" while a paused owner is about to act is a wrong operator, and no store
    /// can save them. So the owner must be dead, or its run must have ended. An effect whose handler asked for a
    /// retry counts as not applied: that is what the handler said.
    pub fn verdict(&self, key: KeyId, nonce: Nonce) -> Option<Option<RunId>> {
        let record = self.record(key)?;
        if record.fence.nonce != nonce {
            return None;
        }
        let book = self.book.lock();
        let attempt = *book.names.get(&nonce)?;
        let owner = book.owners[attempt.index()]?;
        let has_ended = book.runs.iter().any(|run| run.attempt == attempt && run.ended.is_some());
        if !has_ended && !book.dead.contains(&owner) && !book.done.contains(&owner) {
            return None;
        }
        let created_ms = record.created_at.as_millis();
        let input = self.input(&record.fingerprint);
        let is_undeclared = |run: &&Run| {
            run.key == key
                && run.input == input
                && run.ended != Some(Ending::Retry)
                && run.happened_ms.is_some_and(|at_ms| at_ms >= created_ms)
        };
        Some(book.runs.iter().rfind(is_undeclared).map(|run| position(&book.runs, run)))
    }

    /// What became of the attempt that holds a key's record, when its process did not die: how its run ended, if
    /// there was one. Nothing is said of a claim that only a late copy of itself made.
    pub fn survivor(&self, key: KeyId) -> Option<Option<Ending>> {
        let nonce = self.record(key)?.fence.nonce;
        let book = self.book.lock();
        let attempt = *book.names.get(&nonce)?;
        let owner = book.owners[attempt.index()]?;
        if book.orphans.contains(&attempt) {
            return None;
        }
        let run = book.runs.iter().rfind(|run| run.attempt == attempt);
        (!book.dead.contains(&owner)).then(|| run.and_then(|run| run.ended))
    }

    /// Lets the store decide one command, and notes what it did.
    pub fn apply(&self, process: ProcessId, command: &Command) -> Result<transition::Answer, StoreError> {
        use transition::Answer as Told;
        let store = &self.store;
        let answer = match command {
            Command::Claim(ask) => now(store.claim(ask)).map(Told::Claim),
            Command::Renew(lease) => now(store.renew(lease)).map(Told::Fenced),
            Command::Complete { lease, done, retention } => {
                now(store.complete(lease, done, *retention)).map(Told::Fenced)
            }
            Command::Release { lease, answered } => {
                now(store.release(lease, answered.as_ref())).map(Told::Fenced)
            }
            Command::Abandon { lease, reason } => now(store.abandon(lease, *reason)).map(Told::Fenced),
            Command::Settle { id, settlement } => now(store.settle(id, settlement)).map(Told::Settled),
            Command::Delete { id, nonce } => now(store.delete(id, *nonce)).map(Told::Deleted),
        }?;
        if let Some(key) = self.keys.iter().position(|id| id == command.id()) {
            let input = match command {
                Command::Claim(ask) => self.input(&ask.fingerprint),
                _ => 0,
            };
            let mut book = self.book.lock();
            if let Some((attempt, step)) = book.step(process, command, &answer, input) {
                let key = KeyId(key as u32);
                book.note(self.clock.ms(), Event::Applied { process, key, attempt, step });
            }
        }
        Ok(answer)
    }

    fn input(&self, fingerprint: &Fingerprint) -> u8 {
        u8::from(fingerprint.matches(&self.first_input) != Some(true))
    }

    /// Lets the store sweep.
    pub fn sweep(&self, process: ProcessId, batch_max: usize) -> Result<Swept, StoreError> {
        let swept = now(self.store.sweep(batch_max))?;
        let Swept { expired, dropped, .. } = swept;
        self.note(Event::Swept { process, expired, dropped });
        Ok(swept)
    }

    /// Reads a record for a process.
    pub fn get(&self, id: &RecordId) -> Result<Lookup, StoreError> {
        now(self.store.get(id))
    }
}

impl Book {
    fn note(&mut self, at_ms: u64, event: Event) {
        self.entries.push(Entry { at_ms, event });
    }

    fn name(&mut self, nonce: Nonce) -> AttemptId {
        let next = AttemptId(self.names.len() as u32);
        let attempt = *self.names.entry(nonce).or_insert(next);
        if attempt == next {
            self.owners.push(None);
        }
        attempt
    }

    /// What a command and its answer amount to.
    fn step(
        &mut self,
        process: ProcessId,
        command: &Command,
        answer: &transition::Answer,
        input: u8,
    ) -> Option<(AttemptId, Step)> {
        use transition::Answer as Told;
        Some(match (command, answer) {
            (Command::Claim(ask), Told::Claim(claim)) => {
                let attempt = self.name(ask.nonce);
                self.owners[attempt.index()] = Some(process);
                let is_over = self.runs.iter().any(|run| run.attempt == attempt && run.ended.is_some());
                if is_over && matches!(claim, Claim::Acquired(_)) {
                    self.orphans.push(attempt);
                }
                let step = match claim {
                    Claim::Acquired(lease) => Step::Acquired {
                        number: lease.fence.attempt,
                        lease_ms: millis(ask.lease),
                        uncertain_ms: millis(ask.uncertain_retention),
                        on_lapse: ask.on_lapse,
                        input,
                    },
                    Claim::Busy { .. } => Step::Busy,
                    Claim::Mismatch => Step::Mismatch { input },
                    Claim::Replay { recorded, .. } => Step::Replay { value: value_of(recorded)?, input },
                    Claim::Uncertain { fence, .. } => Step::Uncertain { holder: self.name(fence.nonce) },
                    Claim::Unreadable => return None,
                };
                (attempt, step)
            }
            (Command::Renew(lease), Told::Fenced(fenced)) => {
                let done = Step::Renewed { lease_ms: millis(lease.length) };
                (self.name(lease.fence.nonce), fenced_step(*fenced, done))
            }
            (Command::Complete { lease, done, retention }, Told::Fenced(fenced)) => {
                let done = Step::Pinned { value: value_of(done)?, retention_ms: millis(*retention) };
                (self.name(lease.fence.nonce), fenced_step(*fenced, done))
            }
            (Command::Release { lease, .. }, Told::Fenced(fenced)) => {
                (self.name(lease.fence.nonce), fenced_step(*fenced, Step::Released))
            }
            (Command::Abandon { lease, .. }, Told::Fenced(fenced)) => {
                (self.name(lease.fence.nonce), fenced_step(*fenced, Step::Abandoned))
            }
            (Command::Settle { settlement, .. }, Told::Settled(settled)) => {
                let of = self.name(settlement.attempt);
                let (value, retention_ms) = match &settlement.verdict {
                    Verdict::Applied { recorded, retention } => (value_of(recorded), millis(*retention)),
                    Verdict::NotApplied => (None, 0),
                };
                let step = match settled {
                    Settled::Applied => Step::Settled { of, value, retention_ms },
                    _ => Step::NotSettled,
                };
                (self.name(settlement.nonce), step)
            }
            _ => return None,
        })
    }
}

fn fenced_step(fenced: Fenced, done: Step) -> Step {
    match fenced {
        Fenced::Applied => done,
        Fenced::Lost => Step::Lost,
    }
}

/// The name of a key as callers write it.
pub fn key_name(key: KeyId) -> String {
    format!("k{}", key.0)
}

/// What a handler's outcome says: a value is the number of its run, an error's text as well.
fn value_of(recorded: &Recorded) -> Option<RunId> {
    let digits: String =
        recorded.payload.iter().filter(|byte| byte.is_ascii_digit()).map(|byte| char::from(*byte)).collect();
    digits.parse().ok().map(RunId)
}

fn position(runs: &[Run], run: &Run) -> RunId {
    let index = runs.iter().position(|other| std::ptr::eq(other, run));
    RunId(index.expect("the run is one of these") as u32)
}

/// The memory store never waits.
fn now<T>(answer: BoxFuture<'_, T>) -> T {
    answer.now_or_never().expect("the memory store answers at once")
}
