//! [`TracedStore`]: the store that all simulated processes share, its clock and the trace of events.

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
    AttemptId, CallId, CallResult, Event, FaultKind, FaultSite, KeyId, ProcessId, RunEnd, RunId, StoreEffect,
    TraceEntry,
};

/// The operation of every simulated call.
pub const SCOPE: &str = "pay";

/// One shared store, its clock, and the trace of events.
#[derive(Debug)]
pub struct TracedStore {
    /// The store's clock.
    pub clock: SimClock,
    store: MemoryStore,
    keys: Vec<RecordId>,
    /// Of input 0; there is only one other.
    first_input: Fingerprint,
    log: Mutex<TraceLog>,
}

#[derive(Debug, Default)]
struct TraceLog {
    entries: Vec<TraceEntry>,
    names: HashMap<Nonce, AttemptId>,
    owners: Vec<Option<ProcessId>>,
    runs: Vec<TracedRun>,
    /// The input of each call.
    inputs: Vec<u8>,
    processes: u32,
    /// Attempts that acquired the key again after their run had ended, by a late copy of their claim.
    orphans: Vec<AttemptId>,
    dead: Vec<ProcessId>,
    /// Drained to the end.
    done: Vec<ProcessId>,
    fired: [u64; FaultKind::ALL.len()],
}

/// One run of a handler.
#[derive(Clone, Copy, Debug)]
pub struct TracedRun {
    /// Its key.
    pub key: KeyId,
    /// Its input.
    pub input: u8,
    /// Its attempt.
    pub attempt: AttemptId,
    /// When it took effect, on the store's clock.
    pub happened_ms: Option<u64>,
    /// How it ended.
    pub ended: Option<RunEnd>,
}

impl TracedStore {
    /// An empty store and an empty trace, for this many keys. To be made inside the simulated runtime.
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
        Arc::new(Self { clock, store, keys, first_input, log: Mutex::default() })
    }

    /// Every key.
    pub fn keys(&self) -> impl Iterator<Item = KeyId> + use<> {
        (0..self.keys.len() as u32).map(KeyId)
    }

    /// Records an event.
    pub fn note(&self, event: Event) {
        self.log.lock().note(self.clock.ms(), event);
    }

    /// Records a fault that was injected.
    pub fn fault_injected(&self, process: ProcessId, kind: FaultKind, place: FaultSite) {
        let mut log = self.log.lock();
        log.fired[kind as usize] += 1;
        log.note(self.clock.ms(), Event::FaultInjected { process, kind, place });
    }

    /// A new process begins.
    pub fn opened(&self) -> ProcessId {
        let mut log = self.log.lock();
        let process = ProcessId(log.processes);
        log.processes += 1;
        log.note(self.clock.ms(), Event::Opened { process });
        process
    }

    /// A process died.
    pub fn died(&self, process: ProcessId) {
        let mut log = self.log.lock();
        log.dead.push(process);
        log.note(self.clock.ms(), Event::Crashed { process });
    }

    /// A process has finished all its work.
    pub fn done(&self, process: ProcessId) {
        self.log.lock().done.push(process);
    }

    /// A call begins.
    pub fn called(
        &self,
        process: ProcessId,
        key: KeyId,
        input: u8,
        patience_ms: u64,
        has_deadline: bool,
    ) -> CallId {
        let mut log = self.log.lock();
        let call = CallId(log.inputs.len() as u32);
        log.inputs.push(input);
        log.note(self.clock.ms(), Event::Called { call, process, key, input, patience_ms, has_deadline });
        call
    }

    /// A handler starts.
    pub fn started(&self, call: CallId, process: ProcessId, key: KeyId, fence: Fence) -> RunId {
        let mut log = self.log.lock();
        let attempt = log.name(fence.nonce);
        let run = RunId(log.runs.len() as u32);
        let input = log.inputs[call.index()];
        log.runs.push(TracedRun { key, input, attempt, happened_ms: None, ended: None });
        let number = fence.attempt;
        log.note(self.clock.ms(), Event::Started { run, call, process, key, attempt, number });
        run
    }

    /// A handler takes effect.
    pub fn took_effect(&self, run: RunId) {
        let mut log = self.log.lock();
        let at_ms = self.clock.ms();
        log.runs[run.index()].happened_ms = Some(at_ms);
        log.note(at_ms, Event::TookEffect { run });
    }

    /// A handler ends.
    pub fn ended(&self, run: RunId, ending: RunEnd) {
        let mut log = self.log.lock();
        log.runs[run.index()].ended = Some(ending);
        log.note(self.clock.ms(), Event::Ended { run, ending });
    }

    /// How many faults of each kind were injected.
    pub fn fired(&self) -> [u64; FaultKind::ALL.len()] {
        self.log.lock().fired
    }

    /// The trace so far.
    pub fn entries(&self) -> Vec<TraceEntry> {
        self.log.lock().entries.clone()
    }

    /// The results of all calls, in the order of the calls.
    pub fn answers(&self) -> Vec<Option<CallResult>> {
        let log = self.log.lock();
        let mut answers = vec![None; log.inputs.len()];
        for entry in &log.entries {
            if let Event::Answered { call, answer } = entry.event {
                answers[call.index()] = Some(answer);
            }
        }
        answers
    }

    /// The stored record of a key.
    pub fn record(&self, key: KeyId) -> Option<Box<Record>> {
        match now(self.store.get(&self.keys[key.index()])) {
            Ok(Lookup::Found { record, .. }) => Some(record),
            _ => None,
        }
    }

    /// The true verdict on the attempt that holds an uncertain record; none while that attempt may still take effect.
    ///
    /// No store can protect against an operator who settles as not applied while a paused owner is about to take effect.
    /// So the owner must be dead, or its run must have ended. An effect whose handler returned a retry counts as not
    /// applied, as the handler declared.
    pub fn verdict(&self, key: KeyId, nonce: Nonce) -> Option<Option<RunId>> {
        let record = self.record(key)?;
        if record.fence.nonce != nonce {
            return None;
        }
        let log = self.log.lock();
        let attempt = *log.names.get(&nonce)?;
        let owner = log.owners[attempt.index()]?;
        let has_ended = log.runs.iter().any(|run| run.attempt == attempt && run.ended.is_some());
        if !has_ended && !log.dead.contains(&owner) && !log.done.contains(&owner) {
            return None;
        }
        let created_ms = record.created_at.as_millis();
        let input = self.input(&record.fingerprint);
        let is_undeclared = |run: &&TracedRun| {
            run.key == key
                && run.input == input
                && run.ended != Some(RunEnd::Retry)
                && run.happened_ms.is_some_and(|at_ms| at_ms >= created_ms)
        };
        Some(log.runs.iter().rfind(is_undeclared).map(|run| position(&log.runs, run)))
    }

    /// The end of the run of the attempt that holds a key's record, if there was a run, where its process did not die.
    /// None for a claim that only a late copy made.
    pub fn survivor(&self, key: KeyId) -> Option<Option<RunEnd>> {
        let nonce = self.record(key)?.fence.nonce;
        let log = self.log.lock();
        let attempt = *log.names.get(&nonce)?;
        let owner = log.owners[attempt.index()]?;
        if log.orphans.contains(&attempt) {
            return None;
        }
        let run = log.runs.iter().rfind(|run| run.attempt == attempt);
        (!log.dead.contains(&owner)).then(|| run.and_then(|run| run.ended))
    }

    /// Applies one command to the store, and records its effect.
    pub fn apply(&self, process: ProcessId, command: &Command) -> Result<transition::Answer, StoreError> {
        use transition::Answer as StoreAnswer;
        let store = &self.store;
        let answer = match command {
            Command::Claim(ask) => now(store.claim(ask)).map(StoreAnswer::Claim),
            Command::Renew(lease) => now(store.renew(lease)).map(StoreAnswer::Fenced),
            Command::Complete { lease, done, retention } => {
                now(store.complete(lease, done, *retention)).map(StoreAnswer::Fenced)
            }
            Command::Release { lease, answered } => {
                now(store.release(lease, answered.as_ref())).map(StoreAnswer::Fenced)
            }
            Command::Abandon { lease, reason } => now(store.abandon(lease, *reason)).map(StoreAnswer::Fenced),
            Command::Settle { id, settlement } => now(store.settle(id, settlement)).map(StoreAnswer::Settled),
            Command::Delete { id, nonce } => now(store.delete(id, *nonce)).map(StoreAnswer::Deleted),
        }?;
        if let Some(key) = self.keys.iter().position(|id| id == command.id()) {
            let input = match command {
                Command::Claim(ask) => self.input(&ask.fingerprint),
                _ => 0,
            };
            let mut log = self.log.lock();
            if let Some((attempt, step)) = log.step(process, command, &answer, input) {
                let key = KeyId(key as u32);
                log.note(self.clock.ms(), Event::Applied { process, key, attempt, step });
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

impl TraceLog {
    fn note(&mut self, at_ms: u64, event: Event) {
        self.entries.push(TraceEntry { at_ms, event });
    }

    fn name(&mut self, nonce: Nonce) -> AttemptId {
        let next = AttemptId(self.names.len() as u32);
        let attempt = *self.names.entry(nonce).or_insert(next);
        if attempt == next {
            self.owners.push(None);
        }
        attempt
    }

    /// The effect of a command with this answer.
    fn step(
        &mut self,
        process: ProcessId,
        command: &Command,
        answer: &transition::Answer,
        input: u8,
    ) -> Option<(AttemptId, StoreEffect)> {
        use transition::Answer as StoreAnswer;
        Some(match (command, answer) {
            (Command::Claim(ask), StoreAnswer::Claim(claim)) => {
                let attempt = self.name(ask.nonce);
                self.owners[attempt.index()] = Some(process);
                let is_over = self.runs.iter().any(|run| run.attempt == attempt && run.ended.is_some());
                if is_over && matches!(claim, Claim::Acquired(_)) {
                    self.orphans.push(attempt);
                }
                let step = match claim {
                    Claim::Acquired(lease) => StoreEffect::Acquired {
                        number: lease.fence.attempt,
                        lease_ms: millis(ask.lease),
                        uncertain_ms: millis(ask.uncertain_retention),
                        on_lapse: ask.on_lapse,
                        input,
                    },
                    Claim::Busy { .. } => StoreEffect::Busy,
                    Claim::Mismatch => StoreEffect::Mismatch { input },
                    Claim::Replay { recorded, .. } => {
                        StoreEffect::Replay { value: value_of(recorded)?, input }
                    }
                    Claim::Uncertain { fence, .. } => {
                        StoreEffect::Uncertain { holder: self.name(fence.nonce) }
                    }
                    Claim::Unreadable => return None,
                };
                (attempt, step)
            }
            (Command::Renew(lease), StoreAnswer::Fenced(fenced)) => {
                let done = StoreEffect::Renewed { lease_ms: millis(lease.length) };
                (self.name(lease.fence.nonce), fenced_step(*fenced, done))
            }
            (Command::Complete { lease, done, retention }, StoreAnswer::Fenced(fenced)) => {
                let done = StoreEffect::Pinned { value: value_of(done)?, retention_ms: millis(*retention) };
                (self.name(lease.fence.nonce), fenced_step(*fenced, done))
            }
            (Command::Release { lease, .. }, StoreAnswer::Fenced(fenced)) => {
                (self.name(lease.fence.nonce), fenced_step(*fenced, StoreEffect::Released))
            }
            (Command::Abandon { lease, .. }, StoreAnswer::Fenced(fenced)) => {
                (self.name(lease.fence.nonce), fenced_step(*fenced, StoreEffect::Abandoned))
            }
            (Command::Settle { settlement, .. }, StoreAnswer::Settled(settled)) => {
                let of = self.name(settlement.attempt);
                let (value, retention_ms) = match &settlement.verdict {
                    Verdict::Applied { recorded, retention } => (value_of(recorded), millis(*retention)),
                    Verdict::NotApplied => (None, 0),
                };
                let step = match settled {
                    Settled::Applied => StoreEffect::Settled { of, value, retention_ms },
                    _ => StoreEffect::NotSettled,
                };
                (self.name(settlement.nonce), step)
            }
            _ => return None,
        })
    }
}

fn fenced_step(fenced: Fenced, done: StoreEffect) -> StoreEffect {
    match fenced {
        Fenced::Applied => done,
        Fenced::Lost => StoreEffect::Lost,
    }
}

/// The name of a key as callers write it.
pub fn key_name(key: KeyId) -> String {
    format!("k{}", key.0)
}

/// The run of an outcome: both a value and an error's text are the number of its run.
fn value_of(recorded: &Recorded) -> Option<RunId> {
    let digits: String =
        recorded.payload.iter().filter(|byte| byte.is_ascii_digit()).map(|byte| char::from(*byte)).collect();
    digits.parse().ok().map(RunId)
}

fn position(runs: &[TracedRun], run: &TracedRun) -> RunId {
    let index = runs.iter().position(|other| std::ptr::eq(other, run));
    RunId(index.expect("the run is one of these") as u32)
}

/// The memory store never waits.
fn now<T>(answer: BoxFuture<'_, T>) -> T {
    answer.now_or_never().expect("the memory store never suspends")
}
