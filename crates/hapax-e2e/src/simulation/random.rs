//! Seeded histories: many operations on a few keys and processes, with faults by chance.

use std::time::Duration;

use hapax::OnLapse;
use hapax_core::StoreErrorKind;
use hapax_testkit::{Fault, Op, Plan, Point, Random};
use tokio::time::sleep;

use super::event::{FaultKind, FaultSite, KeyId, RunEnd};
use super::gate::HandlerFault;
use super::process::Process;
use super::report::{PlayResult, play};
use super::work::Work;
use super::world::{Settings, SimCall, World};
use super::{LATE, LEASE};

/// The fewest operations in a history.
pub const OPERATIONS_MIN: u64 = 50;
/// The most.
pub const OPERATIONS_MAX: u64 = 500;

/// The parameters of a history.
#[derive(Clone, Copy, Debug)]
struct HistoryPlan {
    settings: Settings,
    operations: u64,
    /// How many store calls in a thousand have a fault.
    faults_per_mille: u32,
    /// How many operations in a thousand are faults of a whole process.
    process_faults_per_mille: u32,
}

impl HistoryPlan {
    fn of(random: &mut Random) -> Self {
        let on_lapse = if random.chance(500) { OnLapse::Uncertain } else { OnLapse::Rerun };
        let processes = 2 + random.below(4) as usize;
        let retention = if random.chance(600) { 2 * LATE } else { Duration::from_secs(24 * 3600) };
        let settings = Settings {
            keys: 1 + random.below(5) as u32,
            retention,
            attempts_max: if random.chance(200) { 3 } else { 100_000 },
            cache_bytes: if random.chance(300) { 1 << 20 } else { 0 },
            is_recorded: random.chance(250),
            ..Settings::plain(processes, on_lapse)
        };
        // Most defects show within few operations; the smaller of two draws leaves time for more histories.
        let more = OPERATIONS_MAX - OPERATIONS_MIN + 1;
        let operations = OPERATIONS_MIN + random.below(more).min(random.below(more));
        Self {
            settings,
            operations,
            faults_per_mille: random.below(150) as u32,
            process_faults_per_mille: random.below(200) as u32,
        }
    }
}

/// Plays the history of `seed`.
pub fn history(seed: u64) -> PlayResult {
    let mut random = Random::seeded(seed);
    let plan = HistoryPlan::of(&mut random);
    let (played, ()) = play(plan.settings, async |world: &mut World| {
        for process in &world.processes {
            plan_faults(process, &plan, &mut random);
        }
        for _ in 0..plan.operations {
            operate(world, &plan, &mut random).await;
        }
    });
    played
}

/// How many operations the history of `seed` has.
pub fn operations(seed: u64) -> u64 {
    HistoryPlan::of(&mut Random::seeded(seed)).operations
}

/// Plans faults of a process's store calls by chance.
fn plan_faults(process: &Process, plan: &HistoryPlan, random: &mut Random) {
    let per_mille = plan.faults_per_mille;
    let mut faults = vec![
        Fault::ErrorBefore(StoreErrorKind::Unavailable),
        Fault::ErrorBefore(StoreErrorKind::Unknown),
        Fault::AnswerLost,
        Fault::AnswerLost,
    ];
    for point in Point::ALL {
        faults.extend([Fault::Delay(point, LATE), Fault::Delay(point, LEASE / 4), Fault::Panic(point)]);
    }
    process.faulty.set_plan(Plan::new().by_chance(random.next_u64(), per_mille, &Op::ALL, &faults));
    process.wire.by_chance(random.next_u64(), per_mille / 3);
}

async fn operate(world: &mut World, plan: &HistoryPlan, random: &mut Random) {
    let process = random.below(world.processes.len() as u64) as usize;
    if world.processes[process].gate.is_dead() {
        if random.chance(300) {
            reopen(world, plan, process, random);
        }
        return;
    }
    if world.processes[process].is_cut_off && random.chance(250) {
        world.processes[process].is_cut_off = false;
        plan_faults(&world.processes[process], plan, random);
    }
    if random.chance(plan.process_faults_per_mille) {
        inject_process_fault(world, plan, process, random).await;
    } else if world.processes[process].is_draining && random.chance(500) {
        reopen(world, plan, process, random);
    } else {
        match random.below(100) {
            0..90 => {
                let ask = ask(plan, random);
                world.call(process, ask);
            }
            90..96 => {
                let key = KeyId(random.below(u64::from(plan.settings.keys)) as u32);
                world.settle(process, key).await;
            }
            _ => world.sweep(process).await,
        }
    }
    let pause_ms = match random.below(10) {
        0..4 => 0,
        4..8 => random.below(100),
        8 => random.below(600),
        _ => random.below(2400),
    };
    if pause_ms > 0 {
        sleep(Duration::from_millis(pause_ms)).await;
    }
}

fn reopen(world: &mut World, plan: &HistoryPlan, process: usize, random: &mut Random) {
    world.restart(process);
    plan_faults(&world.processes[process], plan, random);
}

/// Injects a fault of a whole process or a clock.
async fn inject_process_fault(world: &mut World, plan: &HistoryPlan, process: usize, random: &mut Random) {
    let gate = world.processes[process].gate.clone();
    match random.below(100) {
        0..30 => world.pause(process, Duration::from_millis(random.below(3600))),
        30..50 => {
            world.crash(process);
            if random.chance(500) {
                reopen(world, plan, process, random);
            }
        }
        50..65 => world.hang_up(process),
        65..75 => cut_off(&mut world.processes[process], random),
        75..83 => {
            world.traced.fault_injected(gate.process, FaultKind::ClockStep, FaultSite::Process);
            gate.step_store();
        }
        83..90 => {
            world.traced.fault_injected(gate.process, FaultKind::ClockStep, FaultSite::Process);
            gate.freeze();
        }
        _ => {
            world.drain(process, Duration::from_millis(random.below(1000))).await;
        }
    }
}

/// Lets nearly all store calls of the process fail for a while.
fn cut_off(process: &mut Process, random: &mut Random) {
    process.is_cut_off = true;
    let faults = [Fault::ErrorBefore(StoreErrorKind::Unavailable), Fault::AnswerLost];
    process.faulty.set_plan(Plan::new().by_chance(random.next_u64(), 950, &Op::ALL, &faults));
}

fn ask(plan: &HistoryPlan, random: &mut Random) -> SimCall {
    let wait_ms = if random.chance(400) { random.below(3600) } else { 0 };
    let deadline_ms = 1 + random.below(2400);
    SimCall {
        key: KeyId(random.below(u64::from(plan.settings.keys)) as u32),
        input: u8::from(random.chance(80)),
        wait: Duration::from_millis(wait_ms),
        deadline: random.chance(150).then(|| Duration::from_millis(deadline_ms)),
        reconciles: random.chance(150),
        work: work(plan, random),
    }
}

fn work(plan: &HistoryPlan, random: &mut Random) -> Work {
    let before_ms = work_ms(random);
    let after_ms = work_ms(random);
    let ending = match random.below(100) {
        0..50 => RunEnd::Value,
        50..85 => RunEnd::Retry,
        85..92 => RunEnd::Final,
        92..96 => RunEnd::Unknown,
        _ => RunEnd::Panic,
    };
    let is_troubled = random.chance(plan.faults_per_mille);
    let fault = random.pick(&HandlerFault::ALL).copied().filter(|_| is_troubled);
    let (fault_before, fault_after) = if random.chance(500) { (fault, None) } else { (None, fault) };
    Work {
        before: Duration::from_millis(before_ms),
        after: Duration::from_millis(after_ms),
        // Only a run that returns a retry may have no effect.
        has_effect: ending != RunEnd::Retry || random.chance(500),
        is_careful: random.chance(300),
        ending,
        fault_before,
        fault_after,
    }
}

fn work_ms(random: &mut Random) -> u64 {
    match random.below(10) {
        0..4 => 0,
        4..8 => random.below(60),
        8 => random.below(600),
        _ => random.below(3000),
    }
}
