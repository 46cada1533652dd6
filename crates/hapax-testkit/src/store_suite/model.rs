//! The model: random sequences of calls over a few keys, and the store must agree with
//! [`transition::decide`] over a plain map after each of them.
//!
//! On a manual clock answers and records agree to the millisecond. On a real clock every deadline lies half a
//! tick away from every moment at which something happens, so that the model is right about what has lapsed as
//! long as a whole sequence of calls, waiting not counted, takes less than half a tick, a fifth of the lease.
//!
//! `HAPAX_SUITE_MODEL_RUNS` sets how many sequences are tried, `HAPAX_SUITE_SEED` which ones.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use hapax_core::store::TOMBSTONE_RETENTION;
use hapax_core::transition::{self, Answer, Change, Command, Decision};
use hapax_core::{
    Claim, ClaimRequest, Class, Fence, Fingerprint, Format, Lease, Lookup, Nonce, OnLapse, Query, Reason,
    Record, RecordId, Recorded, Scope, ScopedKey, Settlement, State, Status, Store, StoreError, Timestamp,
    Verdict,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};
use proptest_state_machine::ReferenceStateMachine;

use super::script::{ask, fingerprint, from_env, key_in, record};
use crate::rig::{Facts, Removal, Rig, Time};

/// Sequences tried on a manual clock, and how long each may be.
const RUNS: u32 = 200;
const STEPS_MAX: usize = 60;

/// On a real clock every tick is waited out.
const RUNS_REAL: u32 = 5;
const STEPS_MAX_REAL: usize = 20;

/// Keys, attempts and settlements that a sequence may name. Few, so that they meet.
const KEYS: u8 = 3;
const ATTEMPTS: u8 = 4;
const SETTLEMENTS: u8 = 2;

/// The default seed is fixed: a failed run can be repeated.
const SEED: u64 = 1;

/// The store agrees with the transition function on every answer, record, list and sweep.
///
/// Needs a runtime with more than one thread, as [`run`](super::run) makes it.
pub async fn the_store_agrees_with_the_transition_function(rig: &impl Rig) {
    let facts = rig.facts();
    let (runs, steps_max) = match facts.time {
        Time::Manual => (RUNS, STEPS_MAX),
        Time::Real => (RUNS_REAL, STEPS_MAX_REAL),
    };
    let config = Config {
        cases: from_env("HAPAX_SUITE_MODEL_RUNS", runs),
        failure_persistence: None,
        // Every attempt to shrink a sequence waits its time out too.
        max_shrink_iters: if facts.time == Time::Manual { 4096 } else { 0 },
        ..Config::default()
    };
    let seed: u64 = from_env("HAPAX_SUITE_SEED", SEED);
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));

    let store = rig.store();
    let start = first_moment(rig, &*store).await;
    let clock = parking_lot::Mutex::new((0_u64, start));
    let runtime = tokio::runtime::Handle::current();
    let outcome = tokio::task::block_in_place(|| {
        runner.run(&Sequence::sequential_strategy(1..=steps_max), |(_, steps, _)| {
            let (run, now) = {
                let mut clock = clock.lock();
                clock.0 += 1;
                *clock
            };
            let mut model = Model::new(run, now, &facts);
            let played = runtime.block_on(play(rig, &*store, &mut model, &steps));
            clock.lock().1 = model.now;
            played.map_err(TestCaseError::fail)
        })
    });
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(why, (_, steps, _))) => {
            panic!("the store disagrees with the transition function (seed {seed}): {why}\nafter {steps:#?}")
        }
        Err(TestError::Abort(why)) => panic!("no sequence could be made: {why}"),
    }
}

/// The time of the store's clock, at which the model starts.
async fn first_moment(rig: &impl Rig, store: &dyn Store) -> Timestamp {
    let probe = ask(rig, "first moment");
    store.claim(&probe).await.expect("claim answers");
    record(store, &probe.key.id).await.created_at
}

/// One step of a sequence, without what differs from run to run.
#[derive(Clone, Debug)]
enum Step {
    Claim { key: u8, attempt: u8, asks_for: u8, on_lapse: OnLapse, attempts_max: u32 },
    Renew { key: u8, attempt: u8 },
    Complete { key: u8, attempt: u8, class: Class, value: u8 },
    Release { key: u8, attempt: u8, answered: bool },
    Abandon { key: u8, attempt: u8, reason: Reason },
    Settle { key: u8, attempt: u8, settlement: u8, applied: bool },
    Delete { key: u8, attempt: u8 },
    Advance { ticks: u32 },
    AdvancePastTombstones,
    List { states: Vec<State>, limit: usize },
    Sweep { batch_max: usize },
}

/// The generator of sequences. All steps are possible at all times: a refused call has an answer to compare too.
struct Sequence;

impl ReferenceStateMachine for Sequence {
    type State = ();
    type Transition = Step;

    fn init_state() -> BoxedStrategy<()> {
        Just(()).boxed()
    }

    fn transitions((): &()) -> BoxedStrategy<Step> {
        let key = 0..KEYS;
        let attempt = 0..ATTEMPTS;
        let holder = (key.clone(), attempt.clone());
        let on_lapse = prop_oneof![Just(OnLapse::Uncertain), Just(OnLapse::Rerun)];
        let asks_for = prop_oneof![8 => Just(0_u8), 1 => Just(1), 1 => Just(2)];
        let class = prop_oneof![Just(Class::Success), Just(Class::Error)];
        let reason = proptest::sample::select(Reason::ALL.to_vec());
        let states = proptest::sample::subsequence(State::ALL.to_vec(), 0..=State::ALL.len());
        prop_oneof![
            8 => (holder.clone(), asks_for, on_lapse, 1..4_u32).prop_map(
                |((key, attempt), asks_for, on_lapse, attempts_max)| {
                    Step::Claim { key, attempt, asks_for, on_lapse, attempts_max }
                }
            ),
            3 => holder.clone().prop_map(|(key, attempt)| Step::Renew { key, attempt }),
            4 => (holder.clone(), class, any::<u8>()).prop_map(|((key, attempt), class, value)| {
                Step::Complete { key, attempt, class, value }
            }),
            3 => (holder.clone(), any::<bool>()).prop_map(|((key, attempt), answered)| {
                Step::Release { key, attempt, answered }
            }),
            2 => (holder.clone(), reason).prop_map(|((key, attempt), reason)| {
                Step::Abandon { key, attempt, reason }
            }),
            4 => (holder.clone(), 0..SETTLEMENTS, any::<bool>()).prop_map(
                |((key, attempt), settlement, applied)| Step::Settle { key, attempt, settlement, applied }
            ),
            2 => (key, 0..ATTEMPTS + SETTLEMENTS).prop_map(|(key, attempt)| Step::Delete { key, attempt }),
            6 => (1..4_u32).prop_map(|ticks| Step::Advance { ticks }),
            1 => Just(Step::AdvancePastTombstones),
            2 => (states, 1..4_usize).prop_map(|(states, limit)| Step::List { states, limit }),
            2 => (1..4_usize).prop_map(|batch_max| Step::Sweep { batch_max }),
        ]
        .boxed()
    }

    fn apply((): (), _: &Step) {}
}

/// The plain map that the store must agree with. Every run has its own keys.
struct Model {
    run: u64,
    now: Timestamp,
    tick: Duration,
    /// What keeps deadlines away from moments on a real clock; zero on a manual one.
    aside: Duration,
    time: Time,
    removal: Removal,
    records: BTreeMap<RecordId, Record>,
}

impl Model {
    fn new(run: u64, now: Timestamp, facts: &Facts) -> Self {
        let tick = facts.lease * 2 / 5;
        let aside = if facts.time == Time::Real { tick / 2 } else { Duration::ZERO };
        let (time, removal) = (facts.time, facts.removal);
        Self { run, now, tick, aside, time, removal, records: BTreeMap::new() }
    }

    fn namespace(&self) -> String {
        format!("model {}", self.run)
    }

    fn key(&self, key: u8) -> ScopedKey {
        key_in(Scope::new("model").in_namespace(self.namespace()), &format!("{} {key}", self.run))
    }

    fn ticks(&self, ticks: u32) -> Duration {
        self.tick * ticks + self.aside
    }

    fn nonce(&self, key: u8, attempt: u8) -> Nonce {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.run.to_be_bytes());
        bytes[14..].copy_from_slice(&[key, attempt]);
        Nonce::from_bytes(bytes)
    }

    fn lease(&self, key: u8, attempt: u8) -> Lease {
        let (id, nonce) = (self.key(key).id, self.nonce(key, attempt));
        let held = self.records.get(&id).filter(|record| record.fence.nonce == nonce);
        let fence = Fence { nonce, attempt: held.map_or(1, |record| record.fence.attempt) };
        Lease { id, fence, length: self.ticks(2) }
    }

    /// The command of a step; none for other steps.
    fn command(&self, step: &Step) -> Option<Command> {
        Some(match *step {
            Step::Claim { key, attempt, asks_for, on_lapse, attempts_max } => Command::Claim(ClaimRequest {
                key: self.key(key),
                fingerprint: match asks_for {
                    0 => fingerprint("socks"),
                    1 => fingerprint("shoes"),
                    _ => Fingerprint::from_parts(9, *fingerprint("socks").digest()),
                },
                nonce: self.nonce(key, attempt),
                lease: self.ticks(2),
                on_lapse,
                attempts_max,
                uncertain_retention: self.ticks(6),
            }),
            Step::Renew { key, attempt } => Command::Renew(self.lease(key, attempt)),
            Step::Complete { key, attempt, class, value } => Command::Complete {
                lease: self.lease(key, attempt),
                done: Recorded::new(class, Format::FUNCTION, vec![value]),
                retention: self.ticks(3),
            },
            Step::Release { key, attempt, answered } => Command::Release {
                lease: self.lease(key, attempt),
                answered: answered.then(|| Recorded::new(Class::Error, Format::FUNCTION, "later")),
            },
            Step::Abandon { key, attempt, reason } => {
                Command::Abandon { lease: self.lease(key, attempt), reason }
            }
            Step::Settle { key, attempt, settlement, applied } => Command::Settle {
                id: self.key(key).id,
                settlement: {
                    let verdict = if applied {
                        let recorded = Recorded::new(Class::Success, Format::OPERATOR, vec![settlement]);
                        Verdict::Applied { recorded, retention: self.ticks(4) }
                    } else {
                        Verdict::NotApplied
                    };
                    let nonce = self.nonce(key, ATTEMPTS + settlement);
                    Settlement::new(self.nonce(key, attempt), verdict).with_nonce(nonce)
                },
            },
            Step::Delete { key, attempt } => {
                Command::Delete { id: self.key(key).id, nonce: self.nonce(key, attempt) }
            }
            Step::Advance { .. } | Step::AdvancePastTombstones | Step::List { .. } | Step::Sweep { .. } => {
                return None;
            }
        })
    }

    fn decide(&mut self, command: &Command) -> Answer {
        let id = *command.id();
        let Decision { change, answer } = transition::decide(self.records.get(&id), command, self.now);
        match change {
            Change::Keep => {}
            Change::Put(record) => {
                self.records.insert(id, *record);
            }
            Change::Remove => {
                self.records.remove(&id);
            }
        }
        answer
    }

    fn sweep(&mut self) {
        let now = self.now;
        self.records.retain(|_, record| transition::due(record, now).is_none());
    }

    /// An answer as far as the model can know it: spans only on a manual clock.
    fn knowable_answer(&self, answer: Answer) -> Answer {
        match (self.time, answer) {
            (Time::Real, Answer::Claim(Claim::Busy { .. })) => {
                Answer::Claim(Claim::Busy { lease_left: Duration::ZERO })
            }
            (Time::Real, Answer::Claim(Claim::Replay { recorded, .. })) => {
                Answer::Claim(Claim::Replay { recorded, remaining: Duration::ZERO })
            }
            (_, answer) => answer,
        }
    }

    /// A record as far as the model can know it: moments only on a manual clock.
    fn knowable_record(&self, record: Record) -> Record {
        if self.time == Time::Manual {
            return record;
        }
        let never = Timestamp::default();
        let status = match record.status {
            Status::InProgress { .. } => Status::InProgress { lease_until: never },
            status => status,
        };
        Record { status, created_at: never, updated_at: never, expires_at: never, ..record }
    }
}

/// Plays one sequence against the store; the first disagreement ends it.
async fn play(rig: &impl Rig, store: &dyn Store, model: &mut Model, steps: &[Step]) -> Result<(), String> {
    for (number, step) in steps.iter().enumerate() {
        take(rig, store, model, step).await.map_err(|why| format!("step {number} ({step:?}): {why}"))?;
    }
    Ok(())
}

async fn take(rig: &impl Rig, store: &dyn Store, model: &mut Model, step: &Step) -> Result<(), String> {
    if let Some(command) = model.command(step) {
        let answer = send(store, &command).await.map_err(|error| error.to_string())?;
        let expected = model.decide(&command);
        agree("answer", model.knowable_answer(answer), model.knowable_answer(expected))?;
        return same_records(store, model).await;
    }
    match step {
        Step::Advance { ticks } => advance(rig, model, model.tick * *ticks).await,
        Step::AdvancePastTombstones if model.time == Time::Manual => {
            advance(rig, model, TOMBSTONE_RETENTION).await;
        }
        Step::List { states, limit } => return same_list(store, model, states, *limit).await,
        Step::Sweep { batch_max } => {
            while store.sweep(*batch_max).await.map_err(|error| error.to_string())?.more {}
            model.sweep();
        }
        _ => {}
    }
    same_records(store, model).await
}

async fn advance(rig: &impl Rig, model: &mut Model, span: Duration) {
    rig.advance(span).await;
    model.now = model.now.after(span);
    if model.removal == Removal::ByServer {
        model.sweep();
    }
}

async fn send(store: &dyn Store, command: &Command) -> Result<Answer, StoreError> {
    Ok(match command {
        Command::Claim(ask) => Answer::Claim(store.claim(ask).await?),
        Command::Renew(lease) => Answer::Fenced(store.renew(lease).await?),
        Command::Complete { lease, done, retention } => {
            Answer::Fenced(store.complete(lease, done, *retention).await?)
        }
        Command::Release { lease, answered } => {
            Answer::Fenced(store.release(lease, answered.as_ref()).await?)
        }
        Command::Abandon { lease, reason } => Answer::Fenced(store.abandon(lease, *reason).await?),
        Command::Settle { id, settlement } => Answer::Settled(store.settle(id, settlement).await?),
        Command::Delete { id, nonce } => Answer::Deleted(store.delete(id, *nonce).await?),
    })
}

async fn same_records(store: &dyn Store, model: &Model) -> Result<(), String> {
    for key in 0..KEYS {
        let id = model.key(key).id;
        let stored = match store.get(&id).await.map_err(|error| error.to_string())? {
            Lookup::Found { record, .. } => Some(model.knowable_record(*record)),
            Lookup::Absent => None,
            Lookup::Unreadable { why } => return Err(format!("key {key} is unreadable: {why}")),
        };
        let expected = model.records.get(&id).cloned().map(|record| model.knowable_record(record));
        agree("record", stored, expected)?;
    }
    Ok(())
}

async fn same_list(store: &dyn Store, model: &Model, states: &[State], limit: usize) -> Result<(), String> {
    let mut query =
        Query { states: states.to_vec(), namespace: Some(model.namespace()), limit, ..Query::default() };
    let mut listed = BTreeMap::new();
    loop {
        let page = store.list(&query).await.map_err(|error| error.to_string())?;
        for record in page.records {
            let id = record.key.id;
            if listed.insert(id, model.knowable_record(record)).is_some() {
                return Err(format!("{id} is listed twice"));
            }
        }
        match page.next {
            Some(next) => query.cursor = Some(next),
            None => break,
        }
    }
    let expected: BTreeMap<RecordId, Record> = model
        .records
        .iter()
        .filter(|(_, record)| query.admits(record, model.now))
        .map(|(id, record)| (*id, model.knowable_record(record.clone())))
        .collect();
    agree("list", listed, expected)
}

fn agree<T: PartialEq + Debug>(what: &str, store: T, model: T) -> Result<(), String> {
    if store == model {
        return Ok(());
    }
    Err(format!("the {what} is\n  {store:?}\nand should be\n  {model:?}"))
}
