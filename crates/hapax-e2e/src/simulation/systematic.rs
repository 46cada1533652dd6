//! Every scenario, times every fault point, times every kind of fault.

use hapax::OnLapse;
use hapax_core::StoreErrorKind;
use hapax_testkit::{Fault, Plan, Point};

use super::LATE;
use super::event::FaultKind;
use super::gate::{Gate, HandlerFault};
use super::oracle::Violation;
use super::process::{Injection, Process};
use super::report::{PlayResult, play};
use super::scenario::Scenario;
use super::world::{Settings, World};

/// Consecutive calls that fail in an outage: more than the engine's tries while a caller waits.
const OUTAGE_CALLS: u64 = 8;
/// Long enough for a dropped caller to be gone before its call continues.
const A_MOMENT: std::time::Duration = std::time::Duration::from_millis(1);

/// A fault at one point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum SystematicFault {
    /// The call is not applied, and the caller knows.
    Refused,
    /// The call is not applied, and the caller cannot know.
    RefusedInDoubt,
    /// Many consecutive calls fail.
    Outage,
    /// The call is applied, and its answer is lost.
    AnswerLost,
    /// The answers of many consecutive calls are lost.
    AnswersLost,
    Delayed(Point),
    /// The call is delivered late, whether or not its caller still waits.
    DeliveredLate,
    Dropped(Point),
    Panicked(Point),
    Crashed(Point),
    /// The store's clock jumps.
    StoreClock(Point),
    /// All clocks jump by more than a lease, and nothing runs meanwhile.
    Frozen(Point),
    /// A fault inside a handler.
    Handler(HandlerFault),
}

impl SystematicFault {
    /// Every fault.
    pub fn all() -> Vec<Self> {
        let mut all = vec![
            Self::Refused,
            Self::RefusedInDoubt,
            Self::Outage,
            Self::AnswerLost,
            Self::AnswersLost,
            Self::DeliveredLate,
        ];
        for point in Point::ALL {
            all.extend([
                Self::Delayed(point),
                Self::Dropped(point),
                Self::Panicked(point),
                Self::Crashed(point),
                Self::StoreClock(point),
                Self::Frozen(point),
            ]);
        }
        all.extend(HandlerFault::ALL.map(Self::Handler));
        all
    }

    /// The kind that it is counted as.
    pub const fn kind(self) -> FaultKind {
        match self {
            Self::Refused | Self::RefusedInDoubt | Self::Outage => FaultKind::Error,
            Self::AnswerLost | Self::AnswersLost => FaultKind::Lost,
            Self::Delayed(_) | Self::DeliveredLate => FaultKind::Delay,
            Self::Dropped(_) => FaultKind::Drop,
            Self::Panicked(_) => FaultKind::Panic,
            Self::Crashed(_) => FaultKind::Crash,
            Self::StoreClock(_) | Self::Frozen(_) => FaultKind::ClockStep,
            Self::Handler(trap) => trap.kind(),
        }
    }

    /// Whether no lease may lapse because of it.
    const fn leases_hold(self) -> bool {
        matches!(
            self,
            Self::Refused | Self::RefusedInDoubt | Self::AnswerLost | Self::Dropped(_) | Self::Panicked(_)
        )
    }

    /// Injects it at the nth point of this process, before the scenario's own plan.
    fn arm(self, process: &Process, nth: u64, planned: impl Fn(Plan) -> Plan) {
        let at = |fault| planned(Plan::new().at(nth, fault));
        let outage =
            |fault| planned((nth..nth + OUTAGE_CALLS).fold(Plan::new(), |plan, nth| plan.at(nth, fault)));
        let injection = |point, act: fn(&Gate)| Some(Injection { call: nth, point, kind: self.kind(), act });
        let (plan, injection) = match self {
            Self::Refused => (at(Fault::ErrorBefore(StoreErrorKind::Unavailable)), None),
            Self::RefusedInDoubt => (at(Fault::ErrorBefore(StoreErrorKind::Unknown)), None),
            Self::Outage => (outage(Fault::ErrorBefore(StoreErrorKind::Unavailable)), None),
            Self::AnswerLost => (at(Fault::AnswerLost), None),
            Self::AnswersLost => (outage(Fault::AnswerLost), None),
            Self::Delayed(point) => (at(Fault::Delay(point, LATE)), None),
            Self::Panicked(point) => (at(Fault::Panic(point)), None),
            Self::Crashed(point) => (at(Fault::Crash(point)), None),
            Self::Dropped(point) => (at(Fault::Delay(point, A_MOMENT)), injection(point, Gate::hang_up)),
            Self::StoreClock(point) => (planned(Plan::new()), injection(point, Gate::step_store)),
            Self::Frozen(point) => (planned(Plan::new()), injection(point, Gate::freeze)),
            Self::DeliveredLate => {
                process.wire.late_at(nth);
                (planned(Plan::new()), None)
            }
            Self::Handler(trap) => {
                process.gate.set_handler_fault(nth, trap);
                (planned(Plan::new()), None)
            }
        };
        process.watch(injection);
        process.faulty.set_plan(plan);
    }

    /// Whether it was injected.
    fn is_fired(self, process: &Process, nth: u64) -> bool {
        match self {
            Self::DeliveredLate => process.wire.is_fired(),
            Self::Handler(_) | Self::StoreClock(_) | Self::Frozen(_) => process.gate.is_injected(),
            _ => process.faulty.fired().iter().any(|fired| fired.call == nth),
        }
    }
}

/// One play of a scenario with one fault.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// The fault.
    pub fault: SystematicFault,
    /// Its process.
    pub process: usize,
    /// At which of its points, from 1.
    pub nth: u64,
    /// What claims do with a lapsed one.
    pub on_lapse: OnLapse,
}

/// The results of one scenario.
#[derive(Debug)]
pub struct ScenarioRow {
    /// The scenario.
    pub name: &'static str,
    /// How many faults were injected, by kind.
    pub fired: [u64; FaultKind::ALL.len()],
    /// How often it was played.
    pub plays: u64,
    /// The cases with violations, and their results.
    pub failures: Vec<(String, PlayResult)>,
}

/// Plays a scenario without a fault, then with every fault at every point, in both modes.
pub fn exhaust(scenario: &Scenario) -> ScenarioRow {
    let mut row =
        ScenarioRow { name: scenario.name, fired: [0; FaultKind::ALL.len()], plays: 0, failures: Vec::new() };
    for (on_lapse, expected) in
        [(OnLapse::Uncertain, scenario.at_most_once), (OnLapse::Rerun, scenario.at_least_once)]
    {
        let (mut played, _) = play_case(scenario, on_lapse, None);
        row.plays += 1;
        if played.answers != expected {
            let what = format!("calls returned {}, not {expected}", played.answers);
            played.violations.push(Violation { rule: "T1 results", what, entry: played.entries.len() });
        }
        if !played.violations.is_empty() {
            row.failures.push((format!("{on_lapse:?}, no fault"), played));
        }
        for fault in SystematicFault::all() {
            for process in 0..scenario.processes {
                exhaust_points(scenario, Case { fault, process, nth: 0, on_lapse }, &mut row);
            }
        }
    }
    row
}

/// Counts the points up until the scenario ends without the fault.
fn exhaust_points(scenario: &Scenario, mut case: Case, row: &mut ScenarioRow) {
    loop {
        case.nth += 1;
        let (played, is_fired) = play_case(scenario, case.on_lapse, Some(case));
        row.plays += 1;
        if !played.violations.is_empty() {
            row.failures.push((format!("{case:?}"), played));
        }
        if !is_fired {
            return;
        }
        row.fired[case.fault.kind() as usize] += 1;
    }
}

/// Plays a scenario once. Also returns whether the fault was injected before the healing.
pub fn play_case(scenario: &Scenario, on_lapse: OnLapse, case: Option<Case>) -> (PlayResult, bool) {
    // A claim that is delivered after its caller was dropped has no owner.
    let releases_unrun_claims = scenario.releases_unrun_claims
        && case.is_none_or(|case| case.fault != SystematicFault::DeliveredLate);
    let leases_hold = scenario.releases_unrun_claims && case.is_some_and(|case| case.fault.leases_hold());
    let settings = Settings { releases_unrun_claims, leases_hold, ..(scenario.settings)(on_lapse) };
    play(settings, async |world: &mut World| {
        for (index, process) in world.processes.iter().enumerate() {
            let planned = |plan| (scenario.planned)(index, plan);
            match case.filter(|case| case.process == index) {
                Some(case) => case.fault.arm(process, case.nth, planned),
                None => process.faulty.set_plan(planned(Plan::new())),
            }
        }
        // A process that the scenario replaces takes its faults with it.
        let victims = world.processes.clone();
        (scenario.play)(world).await;
        world.finish().await;
        case.is_some_and(|case| case.fault.is_fired(&victims[case.process], case.nth))
    })
}
