//! The oracle: reads a journal from beginning to end and says what may not have happened.
//!
//! It keeps a naive picture of every record, made only from what was applied, and judges by it what the engine
//! did and what callers were told. Rules that the protocol model also checks have its names
//! for them:
//!
//! | rule | |
//! |---|---|
//! | S1 | one outcome: nothing is pinned over another outcome, and every replay is one that was pinned and still held |
//! | S2 | truth: every value answered was made by an effect, a caller's own value by its own run |
//! | S3 | stored truth: what is pinned was made by the attempt that pinned it, or by the effect that was settled |
//! | S4 | once: at most once, a second effect needs a declared release or an expired record before it |
//! | S5 | no attempt runs twice |
//! | S7 | fence: a record changes hands only when it was free, expired or lapsed |
//! | S8 | nothing is released after an effect that did not ask for it, nor while its run goes on |
//! | S9 | at least once: a run follows a claim of its own, so doubles have a takeover or a release between them |
//! | L1 | once nothing goes wrong any more, everybody is answered, everything is recorded, and every key ends |
//! | T1 | without a fault a scenario's callers are told what the scenario says |
//! | P1 | who was told that nothing was executed executed nothing, then or later |
//! | P2 | without a fault nothing lapses, fails or goes unrecorded, and no waiter is sent away early |

mod records;

use std::fmt;

use hapax_core::OnLapse;

use self::records::{Picture, Records};
use super::event::{Answer, AttemptId, CallId, Ending, Entry, Event, KeyId, Place, ProcessId, RunId};
use super::{LATE, clock::millis};

/// Something that may not have happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The rule it breaks.
    pub rule: &'static str,
    /// What happened.
    pub what: String,
    /// After which entry of the journal it was noticed.
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

/// By what a journal is judged.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms {
    /// What a lapsed lease means.
    pub on_lapse: OnLapse,
    /// Whether so few store calls go wrong that no lease may lapse of it.
    pub is_mild: bool,
}

/// Reads a journal and lists what is wrong with it.
pub fn judge(entries: &[Entry], terms: Terms) -> Vec<Violation> {
    let mut oracle = Oracle { terms, ..Oracle::default() };
    for (index, entry) in entries.iter().enumerate() {
        oracle.entry = index;
        oracle.at_ms = entry.at_ms;
        oracle.see(entry.event);
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
    /// Until when each process may be excused for what it does not do.
    disturbed_until: Vec<u64>,
    /// Until when each may be excused for letting a lease lapse.
    neglects_until: Vec<u64>,
    /// Who drains, and how many calls had been made by then.
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
    /// Which life of its key's record it belongs to.
    life: u32,
    has_happened: bool,
    ended: Option<Ending>,
}

impl Oracle {
    fn see(&mut self, event: Event) {
        match event {
            Event::Asked { process, key, input, patience_ms, has_deadline, .. } => self.calls.push(Call {
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
            Event::Happened { run } => self.happened(run),
            Event::Ended { run, ending } => self.runs[run.index()].ended = Some(ending),
            Event::Applied { process, key, attempt, step } => self.applied(process, key, attempt, step),
            Event::Struck { process, place: Place::Call | Place::Wire, .. } => self.trouble(process),
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
            Event::Gone { .. } | Event::Struck { .. } | Event::Swept { .. } | Event::Healed => {}
        }
    }

    /// A store call of the process went wrong.
    fn trouble(&mut self, process: ProcessId) {
        let neglects_until = self.neglects_until[process.index()];
        self.disturb(process, 2 * millis(LATE));
        if self.terms.is_mild {
            self.neglects_until[process.index()] = neglects_until;
        }
    }

    /// Something is wrong with the process as a whole.
    fn disturb(&mut self, process: ProcessId, span_ms: u64) {
        let until = self.at_ms + span_ms;
        for excused_until in [&mut self.disturbed_until, &mut self.neglects_until] {
            let excused_until = &mut excused_until[process.index()];
            *excused_until = until.max(*excused_until);
        }
    }

    /// Whether anything went wrong with the process at or after `since_ms`.
    fn is_excused(&self, process: ProcessId, since_ms: u64) -> bool {
        self.disturbed_until[process.index()] >= since_ms.max(1)
    }

    fn started(&mut self, call: CallId, process: ProcessId, key: KeyId, attempt: AttemptId, number: u32) {
        let run = RunId(self.runs.len() as u32);
        let picture = self.records.of(key);
        let (life, claimed) = (picture.life, picture.was_claimed_by(attempt, number));
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
            self.wrong("P1 denied", format!("{run} starts after {call} was told that nothing ran"));
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
                    && other.ended != Some(Ending::Retry)
            });
            if let Some((index, _)) = unexplained {
                let earlier = RunId(index as u32);
                self.wrong("S4 once", format!("{earlier} and {run} both happened for {key}"));
            }
        }
        self.runs[run.index()].has_happened = true;
    }

    fn answered(&mut self, call: CallId, answer: Answer) {
        let Call { process, key, input, asked_ms, patience_ms, has_deadline, has_run, .. } =
            self.calls[call.index()];
        match answer {
            Answer::Ran { value, recorded } => {
                if !self.is_own(call, value, &[Ending::Value]) {
                    self.wrong(
                        "S2 truth",
                        format!("{call} was answered {value}, which is not its own value"),
                    );
                }
                if recorded && !self.records.of(key).was_pinned(value) {
                    self.wrong("S2 recorded", format!("{call} was told {value} is recorded, and it is not"));
                }
                if !recorded && !self.is_excused(process, asked_ms) {
                    self.wrong("P2 undisturbed", format!("{call} went unrecorded without a fault"));
                }
            }
            Answer::Failed(run) => {
                let endings = [Ending::Retry, Ending::Final, Ending::Unknown];
                if !self.is_own(call, run, &endings) {
                    self.wrong("S2 truth", format!("{call} was answered with the error of {run}"));
                }
            }
            Answer::Replayed(value) | Answer::PreviouslyFailed(value) => {
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
            Answer::InProgress if self.at_ms < asked_ms + patience_ms => {
                self.wrong("P2 patience", format!("{call} was sent away before its time"));
            }
            Answer::Store | Answer::Superseded if !self.is_excused(process, asked_ms) => {
                self.wrong("P2 undisturbed", format!("{call} failed without a fault: {}", answer.words()));
            }
            Answer::Superseded if !has_run => {
                self.wrong("S2 truth", format!("{call} was superseded without having run"));
            }
            Answer::Draining if !self.draining.iter().any(|(drained, _)| *drained == process) => {
                self.wrong("P2 undisturbed", format!("{call} was refused by a process that does not drain"));
            }
            Answer::Deadline if !has_deadline => {
                self.wrong("P2 undisturbed", format!("{call} had no deadline and missed it"));
            }
            Answer::Other => self.wrong("S2 truth", format!("{call} was answered nobody knows what")),
            _ => {}
        }
        if answer.denies_execution() {
            self.calls[call.index()].is_denied = true;
            if has_run {
                let words = answer.words();
                self.wrong("P1 denied", format!("{call} ran and was told that nothing did: {words}"));
            }
        }
    }

    fn is_own(&self, call: CallId, run: RunId, endings: &[Ending]) -> bool {
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

    fn picture(&mut self, key: KeyId) -> &mut Picture {
        self.records.of(key)
    }
}
