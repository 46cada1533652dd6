//! [`World`]: processes over one store, callers, an operator, and the healing at the end.

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
use super::event::{Answer, CallId, Ending, Event, KeyId, Kind, Place, RunId};
use super::journal::{Ground, SCOPE, key_name};
use super::oracle::{Terms, Violation};
use super::process::Process;
use super::work::Work;
use super::{LATE, LEASE};

/// How long anything may take once nothing goes wrong any more: the longest handler, the longest wait and the
/// longest pause between two tries fit in many times.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a simulated world is like.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How many keys are used.
    pub keys: u32,
    /// How many processes there are to begin with.
    pub processes: usize,
    /// What a lapsed lease means.
    pub on_lapse: OnLapse,
    /// How long an outcome answers.
    pub retention: Duration,
    /// How long a record that never finished is kept.
    pub uncertain_retention: Duration,
    /// The highest attempt number of a takeover.
    pub attempts_max: u32,
    /// Bytes of finished records that a process answers from memory.
    pub cache_bytes: u64,
    /// Whether so little goes wrong that a claim for which nothing ran must have been given up.
    pub is_gentle: bool,
    /// Whether so few store calls go wrong that no lease may lapse of it.
    pub is_mild: bool,
    /// Whether store calls are written down and checked for being linearisable.
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
            is_gentle: false,
            is_mild: false,
            is_recorded: true,
        }
    }

    /// By what the journal is judged.
    pub fn terms(&self) -> Terms {
        Terms { on_lapse: self.on_lapse, is_mild: self.is_mild }
    }

    fn policy(&self) -> Policy {
        // Its lease stays the usual one. Every call asks for a much shorter one, which the keeper must not sleep through.
        Policy::default()
            .on_lapse(self.on_lapse)
            .retention(self.retention)
            .uncertain_retention(self.uncertain_retention)
            .attempts_max(self.attempts_max)
    }
}

/// One call of `once()`.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    /// The key.
    pub key: KeyId,
    /// What is asked for: 0 or 1.
    pub input: u8,
    /// How long it waits for somebody else's result.
    pub wait: Duration,
    /// How long it waits for its own.
    pub deadline: Option<Duration>,
    /// Whether it knows whom to ask when nobody knows.
    pub reconciles: bool,
    /// What it runs.
    pub work: Work,
}

impl Ask {
    /// A call that runs `work` for the first key.
    pub fn of(work: Work) -> Self {
        Self { key: KeyId(0), input: 0, wait: Duration::ZERO, deadline: None, reconciles: false, work }
    }

    /// The same, waiting this long for somebody else's result.
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

/// Processes over one store.
#[derive(Debug)]
pub struct World {
    /// The store and the journal.
    pub ground: Arc<Ground>,
    /// What the world is like.
    pub settings: Settings,
    /// Who lives in it. A restarted process takes the place of the one before.
    pub processes: Vec<Process>,
    /// Processes that were replaced while they drained: what they still do counts, too.
    retired: Vec<Process>,
    history: Option<History>,
    callers: Vec<(CallId, JoinHandle<()>)>,
    /// What was found wrong while healing.
    pub violations: Vec<Violation>,
}

impl World {
    /// A new world. To be made inside the simulated runtime.
    pub fn new(settings: Settings) -> Self {
        let ground = Ground::new(settings.keys);
        let history = settings.is_recorded.then(|| History::new(ground.clock.clone()));
        let processes = (0..settings.processes)
            .map(|_| Process::open(&ground, settings.policy(), settings.cache_bytes, history.as_ref()))
            .collect();
        Self {
            ground,
            settings,
            processes,
            retired: Vec::new(),
            history,
            callers: Vec::new(),
            violations: Vec::new(),
        }
    }

    /// Lets a caller of this process ask, and does not wait for the answer.
    pub fn call(&mut self, process: usize, ask: Ask) -> CallId {
        let Process { hapax, gate, .. } = &self.processes[process];
        let (ground, gate) = (self.ground.clone(), gate.clone());
        let patience = ask.deadline.map_or(ask.wait, |deadline| deadline.min(ask.wait));
        let call = ground.asked(gate.process, ask.key, ask.input, millis(patience), ask.deadline.is_some());
        let mut once = hapax.once(SCOPE, key_name(ask.key)).input(&ask.input).lease(LEASE).wait(ask.wait);
        if let Some(deadline) = ask.deadline {
            once = once.deadline(deadline);
        }
        if ask.reconciles {
            let ground = ground.clone();
            once = once.reconcile(move |question| {
                let answer = match ground.verdict(ask.key, question.fence.nonce) {
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
                    Event::Answered { call, answer: Answer::of(&result) }
                }
                _ => Event::Gone { call },
            };
            ground.note(event);
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
        Process::open(&self.ground, self.settings.policy(), self.settings.cache_bytes, self.history.as_ref())
    }

    /// The process dies.
    pub fn crash(&self, process: usize) {
        let gate = &self.processes[process].gate;
        self.ground.struck(gate.process, Kind::Crash, Place::Process);
        gate.crash();
    }

    /// The process stands still for a while.
    pub fn pause(&self, process: usize, span: Duration) {
        let gate = &self.processes[process].gate;
        self.ground.struck(gate.process, Kind::Delay, Place::Process);
        gate.pause(span);
    }

    /// The callers of the process go away.
    pub fn hang_up(&self, process: usize) {
        let gate = &self.processes[process].gate;
        self.ground.struck(gate.process, Kind::Drop, Place::Callers);
        gate.hang_up();
    }

    /// The process admits nothing more.
    pub async fn drain(&mut self, process: usize, limit: Duration) -> usize {
        let process = &mut self.processes[process];
        process.is_draining = true;
        self.ground.note(Event::Draining { process: process.id() });
        process.hapax.drain(limit).await.left
    }

    /// An operator at this process settles the key if it is uncertain and somebody can know.
    pub async fn settle(&self, process: usize, key: KeyId) {
        let store = self.processes[process].hapax.store().clone();
        let (ground, retention) = (self.ground.clone(), self.settings.retention);
        let Some(settlement) = settlement(&ground, key, retention) else { return };
        let Some(record) = ground.record(key) else { return };
        let gate = self.processes[process].gate.clone();
        let operator = async move {
            let mut hung_up = pin!(gate.hung_up());
            hung_up.as_mut().enable();
            // The same settlement until it is answered, as an operator would.
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
        // A panicking store takes its operator with it, and nobody else; a dead process is not waited for.
        let _ = timeout(2 * LATE, tokio::spawn(operator)).await;
    }

    /// Somebody at this process sweeps.
    pub async fn sweep(&self, process: usize) {
        let store = self.processes[process].hapax.store().clone();
        let sweeper = async move { store.sweep(100).await.map(|_| ()) };
        let _ = timeout(2 * LATE, tokio::spawn(sweeper)).await;
    }

    /// Waits until every call is answered or gone, or until patience ends.
    pub async fn finish(&mut self) {
        let until = Instant::now() + PATIENCE;
        for (call, caller) in std::mem::take(&mut self.callers) {
            if tokio::time::timeout_at(until, caller).await.is_err() {
                self.wrong("L1 no caller hangs", format!("{call} was never answered"));
            }
        }
    }

    /// Nothing goes wrong any more; everybody finishes; then every key must answer as its record says.
    pub async fn heal(&mut self) {
        self.ground.note(Event::Healed);
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
                self.wrong("L1 everything ends", format!("{process} drained, and {left} tasks were left"));
            }
            self.ground.done(process);
        }
        sleep(LATE + 2 * LEASE).await;
        self.processes = vec![self.open()];
        for key in self.ground.keys() {
            self.judge(key).await;
        }
        // What it held must not be dropped before it is recorded.
        self.drain(0, PATIENCE).await;
        if let Some(Err(violation)) = self.history.as_ref().map(History::check) {
            self.wrong("LIN linearisable", violation.to_string());
        }
    }

    /// Asks for a key in a world without faults and compares the answer with the record.
    async fn judge(&mut self, key: KeyId) {
        let before = self.state(key);
        if before == Some(State::Uncertain) {
            self.judge_doubt(key);
        }
        let answer = self.ask_now(key).await;
        let rerun = self.settings.on_lapse == OnLapse::Rerun;
        let is_right = match before {
            Some(State::Completed) => matches!(answer, Some(Answer::Replayed(_))),
            Some(State::Failed) => matches!(answer, Some(Answer::PreviouslyFailed(_))),
            Some(State::Uncertain) if rerun && self.may_rerun(key) => is_fresh(answer),
            Some(State::Uncertain) => answer == Some(Answer::Uncertain) || rerun && is_fresh(answer),
            Some(State::Released) | None => is_fresh(answer),
            // By now its owner is dead or done, and its lease has lapsed.
            Some(State::InProgress) => false,
        };
        if !is_right {
            let words = answer.map_or("nothing", Answer::words);
            let state = before.map_or("absent", State::name);
            self.wrong("L1, L2 healed", format!("{key} was {state} after healing and answered {words}"));
        }
        if answer == Some(Answer::Uncertain) {
            self.settle(0, key).await;
            let settled = self.ask_now(key).await;
            if !settled.is_some_and(|answer| is_fresh(Some(answer)) || answer.repeated().is_some()) {
                let words = settled.map_or("nothing", Answer::words);
                self.wrong("L1 settled", format!("{key} was settled and answered {words}"));
            }
        }
    }

    /// A record is in doubt: somebody must be to blame.
    fn judge_doubt(&mut self, key: KeyId) {
        match self.ground.survivor(key) {
            Some(Some(ending @ (Ending::Value | Ending::Final | Ending::Retry))) => {
                let what =
                    format!("{key} is uncertain though its run ended with {ending:?} and its process lives");
                self.wrong("L1 recorded after all", what);
            }
            Some(None) if self.settings.is_gentle => {
                let what = format!("{key} is uncertain though nothing ran and nobody died");
                self.wrong("L1 given up", what);
            }
            _ => {}
        }
    }

    fn may_rerun(&self, key: KeyId) -> bool {
        let number = self.ground.record(key).map_or(0, |record| record.fence.attempt);
        number < self.settings.attempts_max
    }

    /// The state of a key; none when its record is absent or as good as absent.
    fn state(&self, key: KeyId) -> Option<State> {
        use hapax_core::Clock;
        let now = self.ground.clock.now();
        let record = self.ground.record(key)?;
        let state = record.state_at(now);
        let is_over = record.expires_at <= now && (state.is_terminal() || state == State::Released);
        (!is_over).then_some(state)
    }

    async fn ask_now(&mut self, key: KeyId) -> Option<Answer> {
        for input in [0, 1] {
            let ask = Ask { key, input, ..Ask::of(Work::taking(0)) };
            let call = self.call(0, ask);
            self.finish().await;
            let answer = self.ground.answers()[call.index()];
            if answer != Some(Answer::Mismatch) {
                return answer;
            }
        }
        Some(Answer::Mismatch)
    }

    fn wrong(&mut self, rule: &'static str, what: String) {
        self.violations.push(Violation { rule, what, entry: self.ground.entries().len() });
    }
}

fn is_fresh(answer: Option<Answer>) -> bool {
    matches!(answer, Some(Answer::Ran { recorded: true, .. }))
}

/// What a truthful operator would settle now, if anything.
fn settlement(ground: &Ground, key: KeyId, retention: Duration) -> Option<Settlement> {
    let attempt = ground.record(key)?.fence.nonce;
    let verdict = match ground.verdict(key, attempt)? {
        Some(run) => Verdict::Applied { recorded: outcome(run), retention },
        None => Verdict::NotApplied,
    };
    Some(Settlement::new(attempt, verdict))
}

fn outcome(run: RunId) -> Recorded {
    Recorded::new(Class::Success, Format::FUNCTION, run.0.to_string())
}
