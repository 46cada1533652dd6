//! The oracle: checks a trace from beginning to end.
//!
//! It keeps an expected state of every record, made only from what was applied, and compares it with the actions of the
//! engine and the results of calls. Rules that the protocol model also checks have the same names:
//!
//! | rule | |
//! |---|---|
//! | S1 | one outcome: no outcome is pinned over another, and every replay was pinned and is within its retention |
//! | S2 | truth: every returned value was made by an effect, a call's own value by its own run |
//! | S3 | stored truth: what is pinned was made by the attempt that pinned it, or by the effect that was settled |
//! | S4 | once: at most once, a second effect needs a declared release or an expired record before it |
//! | S5 | no attempt runs twice |
//! | S7 | fence: a record changes hands only when it was free, expired or lapsed |
//! | S8 | no key is released after an effect whose run did not return a retry, nor while its run goes on, nor by a takeover that did not run |
//! | S9 | at least once: every run follows its own claim, so doubles have a takeover or a release between them |
//! | L1 | after healing every call returns, every outcome is recorded, and every key ends |
//! | T1 | without a fault a scenario's calls return the scenario's results |
//! | P1 | a call whose result rules out an execution executed nothing, before or after |
//! | P2 | without a fault no lease lapses, no call fails or goes unrecorded, and no waiter returns early |

mod records;

use std::fmt;

use hapax_core::OnLapse;

use self::records::{ExpectedRecord, Records};
use super::event::{
    AttemptId, CallId, CallResult, Event, FaultSite, KeyId, ProcessId, RunEnd, RunId, TraceEntry,
};
use super::{LATE, clock::millis};

/// A broken rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The rule.
    pub rule: &'static str,
    /// What happened.
    pub what: String,
    /// The index of the trace's entry at which it was found.
    pub entry: usize,
}

impl Violation {
    /// The rule's short name.
    pub fn id(&self) -> &'static str {
        self.rule.split([' ', ',']).next().unwrap_or(self.rule)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} (entry {})", self.rule, self.what, self.entry)
    }
}

/// The terms that a trace must keep.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms {
    /// What claims do with a lapsed one.
    pub on_lapse: OnLapse,
    /// Whether store calls fail so rarely that no lease may lapse because of it.
    pub leases_hold: bool,
}

/// Checks a trace and lists its violations.
pub fn check_trace(entries: &[TraceEntry], terms: Terms) -> Vec<Violation> {
    let mut oracle = Oracle { terms, ..Oracle::default() };
    for (index, entry) in entries.iter().enumerate() {
        oracle.entry = index;
        oracle.at_ms = entry.at_ms;
        oracle.apply_event(entry.event);
    }
    oracle.violations
}

#[derive(Debug, Default)]
struct Oracle {
    terms: Terms,
    entry: usize,
    at_ms: u64,
    records: Records,
    calls: Vec<Call>,
    runs: Vec<Run>,
    /// The run of each attempt, if there was one.
    run_of: Vec<Option<RunId>>,
    /// Until when each process is excused for failed calls and unrecorded outcomes.
    disturbed_until: Vec<u64>,
    /// Until when each process is excused for lapsed leases.
    neglects_until: Vec<u64>,
    /// Processes that drain, and how many calls had been made by then.
    draining: Vec<(ProcessId, usize)>,
    violations: Vec<Violation>,
}

#[derive(Debug)]
struct Call {
    process: ProcessId,
    key: KeyId,
    input: u8,
    asked_ms: u64,
    patience_ms: u64,
    has_deadline: bool,
    has_run: bool,
    is_denied: bool,
}

#[derive(Debug)]
struct Run {
    call: CallId,
    key: KeyId,
    /// How often the key was new when it began.
    life: u32,
    has_happened: bool,
    ended: Option<RunEnd>,
}

impl Oracle {
    fn apply_event(&mut self, event: Event) {
        match event {
            Event::Called { process, key, input, patience_ms, has_deadline, .. } => self.calls.push(Call {
                process,
                key,
                input,
                asked_ms: self.at_ms,
                patience_ms,
                has_deadline,
                has_run: false,
                is_denied: false,
            }),
            Event::Answered { call, answer } => self.answered(call, answer),
            Event::Started { call, process, key, attempt, number, .. } => {
                self.started(call, process, key, attempt, number);
            }
            Event::TookEffect { run } => self.happened(run),
            Event::Ended { run, ending } => self.runs[run.index()].ended = Some(ending),
            Event::Applied { process, key, attempt, step } => self.applied(process, key, attempt, step),
            Event::FaultInjected { process, place: FaultSite::Call | FaultSite::Wire, .. } => {
                self.call_disturbed(process)
            }
            Event::Paused { process, pause_ms } => self.disturb(process, pause_ms + 2 * millis(LATE)),
            Event::Crashed { process } => self.disturb(process, u64::MAX / 2),
            Event::Stepped { store_ms } => {
                self.records.stepped(store_ms);
                for process in 0..self.disturbed_until.len() {
                    self.disturb(ProcessId(process as u32), 2 * millis(LATE));
                }
            }
            Event::Opened { .. } => {
                self.disturbed_until.push(0);
                self.neglects_until.push(0);
            }
            Event::Draining { process } => self.draining.push((process, self.calls.len())),
            Event::Dropped { .. } | Event::FaultInjected { .. } | Event::Swept { .. } | Event::Healed => {}
        }
    }

    /// A store call of the process had a fault.
    fn call_disturbed(&mut self, process: ProcessId) {
        let neglects_until = self.neglects_until[process.index()];
        self.disturb(process, 2 * millis(LATE));
        if self.terms.leases_hold {
            self.neglects_until[process.index()] = neglects_until;
        }
    }

    /// The process as a whole had a fault.
    fn disturb(&mut self, process: ProcessId, span_ms: u64) {
        let until = self.at_ms + span_ms;
        for excused_until in [&mut self.disturbed_until, &mut self.neglects_until] {
            let excused_until = &mut excused_until[process.index()];
            *excused_until = until.max(*excused_until);
        }
    }

    /// Whether the process had a fault at or after `since_ms`.
    fn is_excused(&self, process: ProcessId, since_ms: u64) -> bool {
        self.disturbed_until[process.index()] >= since_ms.max(1)
    }

    fn started(&mut self, call: CallId, process: ProcessId, key: KeyId, attempt: AttemptId, number: u32) {
        let run = RunId(self.runs.len() as u32);
        let expected = self.records.of(key);
        let (life, claimed) = (expected.life, expected.was_claimed_by(attempt, number));
        if !claimed {
            self.wrong("S9 runs follow claims", format!("{run} runs for {attempt}, which never got the key"));
        }
        let slot = attempt.index();
        if self.run_of.len() <= slot {
            self.run_of.resize(slot + 1, None);
        }
        if let Some(earlier) = self.run_of[slot].replace(run) {
            self.wrong("S5 no attempt twice", format!("{earlier} and {run} both run for {attempt}"));
        }
        if self.records.of(key).is_released_by(attempt) {
            self.wrong("S8 no run after release", format!("{run} runs for {attempt}, which was released"));
        }
        let caller = &mut self.calls[call.index()];
        caller.has_run = true;
        if caller.is_denied {
            self.wrong("P1 denied", format!("{run} starts after {call} returned that nothing ran"));
        }
        let came_late = |(drained, calls): &(ProcessId, usize)| *drained == process && call.index() >= *calls;
        if self.draining.iter().any(came_late) {
            self.wrong("P1 draining", format!("{run} starts in {process}, which drains"));
        }
        self.runs.push(Run { call, key, life, has_happened: false, ended: None });
    }

    fn happened(&mut self, run: RunId) {
        let Run { key, life, .. } = self.runs[run.index()];
        if self.terms.on_lapse == OnLapse::Uncertain {
            let unexplained = self.runs.iter().enumerate().find(|(index, other)| {
                *index != run.index()
                    && other.key == key
                    && other.life == life
                    && other.has_happened
                    && other.ended != Some(RunEnd::Retry)
            });
            if let Some((index, _)) = unexplained {
                let earlier = RunId(index as u32);
                self.wrong("S4 once", format!("{earlier} and {run} both happened for {key}"));
            }
        }
        self.runs[run.index()].has_happened = true;
    }

    fn answered(&mut self, call: CallId, answer: CallResult) {
        let Call { process, key, input, asked_ms, patience_ms, has_deadline, has_run, .. } =
            self.calls[call.index()];
        match answer {
            CallResult::Ran { value, recorded } => {
                if !self.is_own(call, value, &[RunEnd::Value]) {
                    self.wrong("S2 truth", format!("{call} returned {value}, which is not its own value"));
                }
                if recorded && !self.records.of(key).was_pinned(value) {
                    self.wrong("S2 recorded", format!("{call} returned {value} as recorded, and it is not"));
                }
                if !recorded && !self.is_excused(process, asked_ms) {
                    self.wrong("P2 undisturbed", format!("{call} went unrecorded without a fault"));
                }
            }
            CallResult::Failed(run) => {
                let endings = [RunEnd::Retry, RunEnd::Final, RunEnd::Unknown];
                if !self.is_own(call, run, &endings) {
                    self.wrong("S2 truth", format!("{call} returned the error of {run}"));
                }
            }
            CallResult::Replayed(value) | CallResult::PreviouslyFailed(value) => {
                if !self.records.of(key).was_held(value, asked_ms) {
                    self.wrong(
                        "S1 one outcome",
                        format!("{call} was replayed {value}, which was not held then"),
                    );
                }
                let asked_for = self.runs.get(value.index()).map(|run| self.calls[run.call.index()].input);
                if asked_for != Some(input) {
                    self.wrong(
                        "S1 fingerprint",
                        format!("{call} was replayed {value}, made for another input"),
                    );
                }
            }
            CallResult::InProgress if self.at_ms < asked_ms + patience_ms => {
                self.wrong("P2 patience", format!("{call} stopped waiting early"));
            }
            CallResult::Store | CallResult::Superseded if !self.is_excused(process, asked_ms) => {
                self.wrong("P2 undisturbed", format!("{call} failed without a fault: {}", answer.words()));
            }
            CallResult::Superseded if !has_run => {
                self.wrong("S2 truth", format!("{call} was superseded without having run"));
            }
            CallResult::Draining if !self.draining.iter().any(|(drained, _)| *drained == process) => {
                self.wrong("P2 undisturbed", format!("{call} was refused by a process that does not drain"));
            }
            CallResult::Deadline if !has_deadline => {
                self.wrong("P2 undisturbed", format!("{call} had no deadline and missed it"));
            }
            CallResult::Other => self.wrong("S2 truth", format!("{call} had an unexpected result")),
            _ => {}
        }
        if answer.denies_execution() {
            self.calls[call.index()].is_denied = true;
            if has_run {
                let words = answer.words();
                self.wrong("P1 denied", format!("{call} ran and returned that nothing did: {words}"));
            }
        }
    }

    fn is_own(&self, call: CallId, run: RunId, endings: &[RunEnd]) -> bool {
        self.runs
            .get(run.index())
            .is_some_and(|run| run.call == call && run.ended.is_some_and(|ended| endings.contains(&ended)))
    }

    fn run_of(&self, attempt: AttemptId) -> Option<&Run> {
        let run = (*self.run_of.get(attempt.index())?)?;
        self.runs.get(run.index())
    }

    fn wrong(&mut self, rule: &'static str, what: String) {
        self.violations.push(Violation { rule, what, entry: self.entry });
    }

    fn expected(&mut self, key: KeyId) -> &mut ExpectedRecord {
        self.records.of(key)
    }
}
