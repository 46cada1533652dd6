//! Every scenario, times every place where something can go wrong, times every kind of fault.

use hapax::OnLapse;
use hapax_core::StoreErrorKind;
use hapax_testkit::{Fault, Plan, Point};

use super::LATE;
use super::event::Kind;
use super::gate::{Gate, Trap};
use super::oracle::Violation;
use super::process::{Deed, Process};
use super::report::{Played, play};
use super::scenario::Scenario;
use super::world::{Settings, World};

/// How many calls in a row an outage strikes: more than the engine tries while a caller waits.
const OUTAGE_CALLS: u64 = 8;
/// Long enough for a dropped caller to be gone before its call goes on.
const A_MOMENT: std::time::Duration = std::time::Duration::from_millis(1);

/// What goes wrong, at one place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Trouble {
    /// The call fails, nothing is applied, and the caller knows.
    Refused,
    /// The call fails, nothing is applied, and the caller cannot know.
    RefusedInDoubt,
    /// Many calls fail in a row.
    Outage,
    /// The call is applied, its answer is lost.
    AnswerLost,
    /// The answers of many calls are lost in a row.
    AnswersLost,
    Delayed(Point),
    /// The call lands late, whether or not anybody still waits for it.
    LandsLate,
    Dropped(Point),
    Panicked(Point),
    Crashed(Point),
    /// The store's clock jumps.
    StoreClock(Point),
    /// Everything stands still for longer than a lease.
    Frozen(Point),
    /// Something inside a handler.
    Handler(Trap),
}

impl Trouble {
    /// Everything that can go wrong.
    pub fn all() -> Vec<Self> {
        let mut all = vec![
            Self::Refused,
            Self::RefusedInDoubt,
            Self::Outage,
            Self::AnswerLost,
            Self::AnswersLost,
            Self::LandsLate,
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
        all.extend(Trap::ALL.map(Self::Handler));
        all
    }

    /// Under which kind it is counted.
    pub const fn kind(self) -> Kind {
        match self {
            Self::Refused | Self::RefusedInDoubt | Self::Outage => Kind::Error,
            Self::AnswerLost | Self::AnswersLost => Kind::Lost,
            Self::Delayed(_) | Self::LandsLate => Kind::Delay,
            Self::Dropped(_) => Kind::Drop,
            Self::Panicked(_) => Kind::Panic,
            Self::Crashed(_) => Kind::Crash,
            Self::StoreClock(_) | Self::Frozen(_) => Kind::Step,
            Self::Handler(trap) => trap.kind(),
        }
    }

    /// Whether it spoils so little that no lease may lapse of it.
    const fn is_mild(self) -> bool {
        matches!(
            self,
            Self::Refused | Self::RefusedInDoubt | Self::AnswerLost | Self::Dropped(_) | Self::Panicked(_)
        )
    }

    /// Makes it happen at the nth place of this process, in front of what the scenario itself has planned.
    fn arm(self, process: &Process, nth: u64, planned: impl Fn(Plan) -> Plan) {
        let at = |fault| planned(Plan::new().at(nth, fault));
        let outage =
            |fault| planned((nth..nth + OUTAGE_CALLS).fold(Plan::new(), |plan, nth| plan.at(nth, fault)));
        let deed = |point, act: fn(&Gate)| Some(Deed { call: nth, point, kind: self.kind(), act });
        let (plan, deed) = match self {
            Self::Refused => (at(Fault::ErrorBefore(StoreErrorKind::Unavailable)), None),
            Self::RefusedInDoubt => (at(Fault::ErrorBefore(StoreErrorKind::Unknown)), None),
            Self::Outage => (outage(Fault::ErrorBefore(StoreErrorKind::Unavailable)), None),
            Self::AnswerLost => (at(Fault::AnswerLost), None),
            Self::AnswersLost => (outage(Fault::AnswerLost), None),
            Self::Delayed(point) => (at(Fault::Delay(point, LATE)), None),
            Self::Panicked(point) => (at(Fault::Panic(point)), None),
            Self::Crashed(point) => (at(Fault::Crash(point)), None),
            Self::Dropped(point) => (at(Fault::Delay(point, A_MOMENT)), deed(point, Gate::hang_up)),
            Self::StoreClock(point) => (planned(Plan::new()), deed(point, Gate::step_store)),
            Self::Frozen(point) => (planned(Plan::new()), deed(point, Gate::freeze)),
            Self::LandsLate => {
                process.wire.late_at(nth);
                (planned(Plan::new()), None)
            }
            Self::Handler(trap) => {
                process.gate.set_trap(nth, trap);
                (planned(Plan::new()), None)
            }
        };
        process.watch(deed);
        process.faulty.set_plan(plan);
    }

    /// Whether it happened.
    fn is_fired(self, process: &Process, nth: u64) -> bool {
        match self {
            Self::LandsLate => process.wire.is_fired(),
            Self::Handler(_) | Self::StoreClock(_) | Self::Frozen(_) => process.gate.is_sprung(),
            _ => process.faulty.fired().iter().any(|fired| fired.call == nth),
        }
    }
}

/// One play of a scenario with one fault.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// What goes wrong.
    pub trouble: Trouble,
    /// In which process.
    pub process: usize,
    /// At which of its places, from 1.
    pub nth: u64,
    /// What a lapsed lease means.
    pub on_lapse: OnLapse,
}

/// What came of one scenario.
#[derive(Debug)]
pub struct Row {
    /// The scenario.
    pub name: &'static str,
    /// How many faults fired, by kind.
    pub fired: [u64; Kind::ALL.len()],
    /// How often it was played.
    pub plays: u64,
    /// What went wrong, with the story.
    pub failures: Vec<(String, Played)>,
}

/// Plays a scenario without a fault, then with every fault at every place, in both modes.
pub fn exhaust(scenario: &Scenario) -> Row {
    let mut row = Row { name: scenario.name, fired: [0; Kind::ALL.len()], plays: 0, failures: Vec::new() };
    for (on_lapse, expected) in
        [(OnLapse::Uncertain, scenario.at_most_once), (OnLapse::Rerun, scenario.at_least_once)]
    {
        let (mut played, _) = play_case(scenario, on_lapse, None);
        row.plays += 1;
        if played.told != expected {
            let what = format!("callers were told {}, not {expected}", played.told);
            played.violations.push(Violation { rule: "T1 told", what, entry: played.entries.len() });
        }
        if !played.violations.is_empty() {
            row.failures.push((format!("{on_lapse:?}, no fault"), played));
        }
        for trouble in Trouble::all() {
            for process in 0..scenario.processes {
                exhaust_place(scenario, Case { trouble, process, nth: 0, on_lapse }, &mut row);
            }
        }
    }
    row
}

/// Counts the place up until the scenario ends without the fault.
fn exhaust_place(scenario: &Scenario, mut case: Case, row: &mut Row) {
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
        row.fired[case.trouble.kind() as usize] += 1;
    }
}

/// Plays a scenario once; tells whether the fault fired before the healing.
pub fn play_case(scenario: &Scenario, on_lapse: OnLapse, case: Option<Case>) -> (Played, bool) {
    // A claim that lands when its owner no longer waits for it is nobody's.
    let is_gentle = scenario.is_gentle && case.is_none_or(|case| case.trouble != Trouble::LandsLate);
    let is_mild = scenario.is_gentle && case.is_some_and(|case| case.trouble.is_mild());
    let settings = Settings { is_gentle, is_mild, ..(scenario.settings)(on_lapse) };
    play(settings, async |world: &mut World| {
        for (index, process) in world.processes.iter().enumerate() {
            let planned = |plan| (scenario.planned)(index, plan);
            match case.filter(|case| case.process == index) {
                Some(case) => case.trouble.arm(process, case.nth, planned),
                None => process.faulty.set_plan(planned(Plan::new())),
            }
        }
        // A process that the scenario replaces takes its faults with it.
        let victims = world.processes.clone();
        (scenario.play)(world).await;
        world.finish().await;
        case.is_some_and(|case| case.trouble.is_fired(&victims[case.process], case.nth))
    })
}
