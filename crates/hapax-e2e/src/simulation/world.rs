//! [`World`]: processes on one store, callers, an operator, and the healing at the end.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use hapax::{OnLapse, Policy, Reconciled};
use hapax_core::{Class, Format, Recorded, Settlement, State, StoreError, Verdict};
use hapax_testkit::History;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::clock::millis;
use super::event::{CallId, CallResult, Event, FaultKind, FaultSite, KeyId, RunEnd, RunId};
use super::oracle::{Terms, Violation};
use super::process::Process;
use super::trace::{SCOPE, TracedStore, key_name};
use super::work::Work;
use super::{LATE, LEASE};

/// How long calls may take after healing: many times the longest handler, the longest wait and the longest back-off.
const PATIENCE: Duration = Duration::from_secs(60);

/// The parameters of a simulated world.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How many keys are used.
    pub keys: u32,
    /// How many processes there are at the start.
    pub processes: usize,
    /// What claims do with a lapsed one.
    pub on_lapse: OnLapse,
    /// The retention of outcomes.
    pub retention: Duration,
    /// The retention of uncertain records.
    pub uncertain_retention: Duration,
    /// The highest attempt number of a takeover.
    pub attempts_max: u32,
    /// Bytes of finished records that a process caches.
    pub cache_bytes: u64,
    /// Whether faults are so few that a claim without a run must have been released.
    pub releases_unrun_claims: bool,
    /// Whether store calls fail so rarely that no lease may lapse because of it.
    pub leases_hold: bool,
    /// Whether store calls are recorded and checked for linearisability.
    pub is_recorded: bool,
}

impl Settings {
    /// One key, these many processes, nothing expires.
    pub fn plain(processes: usize, on_lapse: OnLapse) -> Self {
        Self {
            keys: 1,
            processes,
            on_lapse,
            retention: Duration::from_secs(24 * 3600),
            uncertain_retention: Duration::from_secs(30 * 24 * 3600),
            attempts_max: 1000,
            cache_bytes: 0,
            releases_unrun_claims: false,
            leases_hold: false,
            is_recorded: true,
        }
    }

    /// The terms that the trace must keep.
    pub fn terms(&self) -> Terms {
        Terms { on_lapse: self.on_lapse, leases_hold: self.leases_hold }
    }

    fn policy(&self) -> Policy {
        // The policy has the default lease. Every call sets a much shorter one, which the keeper must not sleep through.
        Policy::default()
            .on_lapse(self.on_lapse)
            .retention(self.retention)
            .uncertain_retention(self.uncertain_retention)
            .attempts_max(self.attempts_max)
    }
}

/// One call of `once()`.
#[derive(Clone, Copy, Debug)]
pub struct SimCall {
    /// The key.
    pub key: KeyId,
    /// The input: 0 or 1.
    pub input: u8,
    /// How long it waits for another attempt's result.
    pub wait: Duration,
    /// The deadline for its own result.
    pub deadline: Option<Duration>,
    /// Whether it reconciles uncertain records.
    pub reconciles: bool,
    /// What it runs.
    pub work: Work,
}

impl SimCall {
    /// A call that runs `work` for the first key.
    pub fn of(work: Work) -> Self {
        Self { key: KeyId(0), input: 0, wait: Duration::ZERO, deadline: None, reconciles: false, work }
    }

    /// The same, waiting this long for another attempt's result.
    pub fn waiting(mut self, ms: u64) -> Self {
        self.wait = Duration::from_millis(ms);
        self
    }

    /// The same with another input.
    pub fn input(mut self, input: u8) -> Self {
        self.input = input;
        self
    }
}

/// Processes on one store.
#[derive(Debug)]
pub struct World {
    /// The store and the trace.
    pub traced: Arc<TracedStore>,
    /// Its parameters.
    pub settings: Settings,
    /// Its processes. A restarted process replaces the one before.
    pub processes: Vec<Process>,
    /// Processes that were replaced while they drained: their effects count too.
    retired: Vec<Process>,
    history: Option<History>,
    callers: Vec<(CallId, JoinHandle<()>)>,
    /// Violations that were found while healing.
    pub violations: Vec<Violation>,
}

impl World {
    /// A new world. To be made inside the simulated runtime.
    pub fn new(settings: Settings) -> Self {
        let traced = TracedStore::new(settings.keys);
        let history = settings.is_recorded.then(|| History::new(traced.clock.clone()));
        let processes = (0..settings.processes)
            .map(|_| Process::open(&traced, settings.policy(), settings.cache_bytes, history.as_ref()))
            .collect();
        Self {
            traced,
            settings,
            processes,
            retired: Vec::new(),
            history,
            callers: Vec::new(),
            violations: Vec::new(),
        }
    }

    /// Starts a call of this process without waiting for its result.
    pub fn call(&mut self, process: usize, ask: SimCall) -> CallId {
        let Process { hapax, gate, .. } = &self.processes[process];
        let (traced, gate) = (self.traced.clone(), gate.clone());
        let patience = ask.deadline.map_or(ask.wait, |deadline| deadline.min(ask.wait));
        let call = traced.called(gate.process, ask.key, ask.input, millis(patience), ask.deadline.is_some());
        let mut once = hapax.once(SCOPE, key_name(ask.key)).input(&ask.input).lease(LEASE).wait(ask.wait);
        if let Some(deadline) = ask.deadline {
            once = once.deadline(deadline);
        }
        if ask.reconciles {
            let traced = traced.clone();
            once = once.reconcile(move |question| {
                let answer = match traced.verdict(ask.key, question.fence.nonce) {
                    Some(Some(run)) => Reconciled::Applied(run.0),
                    Some(None) => Reconciled::NotApplied,
                    None => Reconciled::Unknown,
                };
                async move { answer }
            });
        }
        let caller = async move {
            let mut hung_up = pin!(gate.hung_up());
            hung_up.as_mut().enable();
            let at_work = gate.clone();
            let answer = pin!(once.run(move |context| ask.work.run(at_work, call, ask.key, context)));
            let event = match select(answer, hung_up).await {
                Either::Left((result, _)) if !gate.is_dead() => {
                    Event::Answered { call, answer: CallResult::of(&result) }
                }
                _ => Event::Dropped { call },
            };
            traced.note(event);
        };
        self.callers.push((call, tokio::spawn(caller)));
        call
    }

    /// The process is replaced by a new one.
    pub fn restart(&mut self, process: usize) {
        let new = self.open();
        let old = std::mem::replace(&mut self.processes[process], new);
        if !old.gate.is_dead() {
            self.retired.push(old);
        }
    }

    fn open(&self) -> Process {
        Process::open(&self.traced, self.settings.policy(), self.settings.cache_bytes, self.history.as_ref())
    }

    /// The process dies.
    pub fn crash(&self, process: usize) {
        let gate = &self.processes[process].gate;
        self.traced.fault_injected(gate.process, FaultKind::Crash, FaultSite::Process);
        gate.crash();
    }

    /// Pauses the process for a while.
    pub fn pause(&self, process: usize, span: Duration) {
        let gate = &self.processes[process].gate;
        self.traced.fault_injected(gate.process, FaultKind::Delay, FaultSite::Process);
        gate.pause(span);
    }

    /// The callers of the process hang up.
    pub fn hang_up(&self, process: usize) {
        let gate = &self.processes[process].gate;
        self.traced.fault_injected(gate.process, FaultKind::Drop, FaultSite::Callers);
        gate.hang_up();
    }

    /// Drains the process.
    pub async fn drain(&mut self, process: usize, limit: Duration) -> usize {
        let process = &mut self.processes[process];
        process.is_draining = true;
        self.traced.note(Event::Draining { process: process.id() });
        process.hapax.drain(limit).await.left
    }

    /// An operator at this process settles the key if it is uncertain and the true verdict is known.
    pub async fn settle(&self, process: usize, key: KeyId) {
        let store = self.processes[process].hapax.store().clone();
        let (traced, retention) = (self.traced.clone(), self.settings.retention);
        let Some(settlement) = settlement(&traced, key, retention) else { return };
        let Some(record) = traced.record(key) else { return };
        let gate = self.processes[process].gate.clone();
        let operator = async move {
            let mut hung_up = pin!(gate.hung_up());
            hung_up.as_mut().enable();
            // Retries the same settlement until it is answered, as an operator would.
            let settle = pin!(async {
                for _ in 0..3 {
                    let answer: Result<_, StoreError> = store.settle(&record.key.id, &settlement).await;
                    if answer.is_ok() {
                        break;
                    }
                }
            });
            select(settle, hung_up).await;
        };
        // A panic of the store ends only its operator; a dead process is not waited for.
        let _ = timeout(2 * LATE, tokio::spawn(operator)).await;
    }

    /// Sweeps from this process.
    pub async fn sweep(&self, process: usize) {
        let store = self.processes[process].hapax.store().clone();
        let sweeper = async move { store.sweep(100).await.map(|_| ()) };
        let _ = timeout(2 * LATE, tokio::spawn(sweeper)).await;
    }

    /// Waits until every call has returned or was dropped, or until the time limit ends.
    pub async fn finish(&mut self) {
        let until = Instant::now() + PATIENCE;
        for (call, caller) in std::mem::take(&mut self.callers) {
            if tokio::time::timeout_at(until, caller).await.is_err() {
                self.wrong("L1 no caller hangs", format!("{call} was never answered"));
            }
        }
    }

    /// Ends all faults and waits for all calls; then every key must return what its record holds.
    pub async fn heal(&mut self) {
        self.traced.note(Event::Healed);
        let mut retired = std::mem::take(&mut self.retired);
        self.processes.append(&mut retired);
        self.processes.iter().for_each(Process::heal);
        self.finish().await;
        for index in 0..self.processes.len() {
            if self.processes[index].gate.is_dead() {
                continue;
            }
            let left = self.drain(index, PATIENCE).await;
            let process = self.processes[index].id();
            if left > 0 {
                self.wrong("L1 all tasks end", format!("{process} drained, and {left} tasks were left"));
            }
            self.traced.done(process);
        }
        sleep(LATE + 2 * LEASE).await;
        self.processes = vec![self.open()];
        for key in self.traced.keys() {
            self.check_key(key).await;
        }
        // Its outcomes must not be dropped before they are recorded.
        self.drain(0, PATIENCE).await;
        if let Some(Err(violation)) = self.history.as_ref().map(History::check) {
            self.wrong("LIN linearisable", violation.to_string());
        }
    }

    /// Calls a key in a world without faults and compares the result with the record.
    async fn check_key(&mut self, key: KeyId) {
        let before = self.state(key);
        if before == Some(State::Uncertain) {
            self.check_uncertain(key);
        }
        let answer = self.ask_now(key).await;
        let rerun = self.settings.on_lapse == OnLapse::Rerun;
        let is_right = match before {
            Some(State::Completed) => matches!(answer, Some(CallResult::Replayed(_))),
            Some(State::Failed) => matches!(answer, Some(CallResult::PreviouslyFailed(_))),
            Some(State::Uncertain) if rerun && self.may_rerun(key) => is_fresh(answer),
            Some(State::Uncertain) => answer == Some(CallResult::Uncertain) || rerun && is_fresh(answer),
            Some(State::Released) | None => is_fresh(answer),
            // By now its owner is dead or done, and its lease has lapsed.
            Some(State::InProgress) => false,
        };
        if !is_right {
            let words = answer.map_or("nothing", CallResult::words);
            let state = before.map_or("absent", State::name);
            self.wrong("L1, L2 healed", format!("{key} was {state} after healing and answered {words}"));
        }
        if answer == Some(CallResult::Uncertain) {
            self.settle(0, key).await;
            let settled = self.ask_now(key).await;
            if !settled.is_some_and(|answer| is_fresh(Some(answer)) || answer.repeated().is_some()) {
                let words = settled.map_or("nothing", CallResult::words);
                self.wrong("L1 settled", format!("{key} was settled and answered {words}"));
            }
        }
    }

    /// An uncertain record must have a cause.
    fn check_uncertain(&mut self, key: KeyId) {
        let is_takeover = self.traced.record(key).is_some_and(|record| record.takeovers > 0);
        match self.traced.survivor(key) {
            Some(Some(ending @ (RunEnd::Value | RunEnd::Final | RunEnd::Retry))) => {
                let what =
                    format!("{key} is uncertain though its run ended with {ending:?} and its process lives");
                self.wrong("L1 recorded after all", what);
            }
            // What a takeover has replaced may have run.
            Some(None) if self.settings.releases_unrun_claims && !is_takeover => {
                let what = format!("{key} is uncertain though nothing ran and no process died");
                self.wrong("L1 released", what);
            }
            _ => {}
        }
    }

    fn may_rerun(&self, key: KeyId) -> bool {
        let number = self.traced.record(key).map_or(0, |record| record.fence.attempt);
        number < self.settings.attempts_max
    }

    /// The state of a key; none when its record is absent or expired.
    fn state(&self, key: KeyId) -> Option<State> {
        use hapax_core::Clock;
        let now = self.traced.clock.now();
        let record = self.traced.record(key)?;
        let state = record.state_at(now);
        let is_over = record.expires_at <= now && (state.is_terminal() || state == State::Released);
        (!is_over).then_some(state)
    }

    async fn ask_now(&mut self, key: KeyId) -> Option<CallResult> {
        for input in [0, 1] {
            let ask = SimCall { key, input, ..SimCall::of(Work::taking(0)) };
            let call = self.call(0, ask);
            self.finish().await;
            let answer = self.traced.answers()[call.index()];
            if answer != Some(CallResult::Mismatch) {
                return answer;
            }
        }
        Some(CallResult::Mismatch)
    }

    fn wrong(&mut self, rule: &'static str, what: String) {
        self.violations.push(Violation { rule, what, entry: self.traced.entries().len() });
    }
}

fn is_fresh(answer: Option<CallResult>) -> bool {
    matches!(answer, Some(CallResult::Ran { recorded: true, .. }))
}

/// The settlement of a truthful operator, if one is possible now.
fn settlement(traced: &TracedStore, key: KeyId, retention: Duration) -> Option<Settlement> {
    let attempt = traced.record(key)?.fence.nonce;
    let verdict = match traced.verdict(key, attempt)? {
        Some(run) => Verdict::Applied { recorded: outcome(run), retention },
        None => Verdict::NotApplied,
    };
    Some(Settlement::new(attempt, verdict))
}

fn outcome(run: RunId) -> Recorded {
    Recorded::new(Class::Success, Format::FUNCTION, run.0.to_string())
}
