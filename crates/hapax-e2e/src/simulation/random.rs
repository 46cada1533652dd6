//! Seeded histories: many operations over a few keys and processes, with everything going wrong by chance.

use std::time::Duration;

use hapax::OnLapse;
use hapax_core::StoreErrorKind;
use hapax_testkit::{Fault, Op, Plan, Point, Random};
use tokio::time::sleep;

use super::event::{Ending, KeyId, Kind, Place};
use super::gate::Trap;
use super::process::Process;
use super::report::{Played, play};
use super::work::Work;
use super::world::{Ask, Settings, World};
use super::{LATE, LEASE};

/// The fewest operations in a history.
pub const OPERATIONS_MIN: u64 = 50;
/// The most.
pub const OPERATIONS_MAX: u64 = 500;

/// How a history is to be.
#[derive(Clone, Copy, Debug)]
struct Plot {
    settings: Settings,
    operations: u64,
    /// How many store calls in a thousand go wrong.
    faults_per_mille: u32,
    /// How many operations in a thousand go wrong as a whole.
    upheavals_per_mille: u32,
}

impl Plot {
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
        // Most faults need few operations to show; the smaller of two draws leaves time for more histories.
        let more = OPERATIONS_MAX - OPERATIONS_MIN + 1;
        let operations = OPERATIONS_MIN + random.below(more).min(random.below(more));
        Self {
            settings,
            operations,
            faults_per_mille: random.below(150) as u32,
            upheavals_per_mille: random.below(200) as u32,
        }
    }
}

/// Plays the history that `seed` names.
pub fn history(seed: u64) -> Played {
    let mut random = Random::seeded(seed);
    let plot = Plot::of(&mut random);
    let (played, ()) = play(plot.settings, async |world: &mut World| {
        for process in &world.processes {
            trouble(process, &plot, &mut random);
        }
        for _ in 0..plot.operations {
            operate(world, &plot, &mut random).await;
        }
    });
    played
}

/// How many operations the history that `seed` names has.
pub fn operations(seed: u64) -> u64 {
    Plot::of(&mut Random::seeded(seed)).operations
}

/// Lets the store calls of a process go wrong by chance.
fn trouble(process: &Process, plot: &Plot, random: &mut Random) {
    let per_mille = plot.faults_per_mille;
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

async fn operate(world: &mut World, plot: &Plot, random: &mut Random) {
    let process = random.below(world.processes.len() as u64) as usize;
    if world.processes[process].gate.is_dead() {
        if random.chance(300) {
            reopen(world, plot, process, random);
        }
        return;
    }
    if world.processes[process].is_cut_off && random.chance(250) {
        world.processes[process].is_cut_off = false;
        trouble(&world.processes[process], plot, random);
    }
    if random.chance(plot.upheavals_per_mille) {
        upheaval(world, plot, process, random).await;
    } else if world.processes[process].is_draining && random.chance(500) {
        reopen(world, plot, process, random);
    } else {
        match random.below(100) {
            0..90 => {
                let ask = ask(plot, random);
                world.call(process, ask);
            }
            90..96 => {
                let key = KeyId(random.below(u64::from(plot.settings.keys)) as u32);
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

fn reopen(world: &mut World, plot: &Plot, process: usize, random: &mut Random) {
    world.restart(process);
    trouble(&world.processes[process], plot, random);
}

/// Something happens to a whole process, or to time.
async fn upheaval(world: &mut World, plot: &Plot, process: usize, random: &mut Random) {
    let gate = world.processes[process].gate.clone();
    match random.below(100) {
        0..30 => world.pause(process, Duration::from_millis(random.below(3600))),
        30..50 => {
            world.crash(process);
            if random.chance(500) {
                reopen(world, plot, process, random);
            }
        }
        50..65 => world.hang_up(process),
        65..75 => cut_off(&mut world.processes[process], random),
        75..83 => {
            world.ground.struck(gate.process, Kind::Step, Place::Process);
            gate.step_store();
        }
        83..90 => {
            world.ground.struck(gate.process, Kind::Step, Place::Process);
            gate.freeze();
        }
        _ => {
            world.drain(process, Duration::from_millis(random.below(1000))).await;
        }
    }
}

/// Nearly all store calls of the process fail, until it finds its way back.
fn cut_off(process: &mut Process, random: &mut Random) {
    process.is_cut_off = true;
    let faults = [Fault::ErrorBefore(StoreErrorKind::Unavailable), Fault::AnswerLost];
    process.faulty.set_plan(Plan::new().by_chance(random.next_u64(), 950, &Op::ALL, &faults));
}

fn ask(plot: &Plot, random: &mut Random) -> Ask {
    let wait_ms = if random.chance(400) { random.below(3600) } else { 0 };
    let deadline_ms = 1 + random.below(2400);
    Ask {
        key: KeyId(random.below(u64::from(plot.settings.keys)) as u32),
        input: u8::from(random.chance(80)),
        wait: Duration::from_millis(wait_ms),
        deadline: random.chance(150).then(|| Duration::from_millis(deadline_ms)),
        reconciles: random.chance(150),
        work: work(plot, random),
    }
}

fn work(plot: &Plot, random: &mut Random) -> Work {
    let before_ms = work_ms(random);
    let after_ms = work_ms(random);
    let ending = match random.below(100) {
        0..50 => Ending::Value,
        50..85 => Ending::Retry,
        85..92 => Ending::Final,
        92..96 => Ending::Unknown,
        _ => Ending::Panic,
    };
    let is_troubled = random.chance(plot.faults_per_mille);
    let trap = random.pick(&Trap::ALL).copied().filter(|_| is_troubled);
    let (trouble_before, trouble_after) = if random.chance(500) { (trap, None) } else { (None, trap) };
    Work {
        before: Duration::from_millis(before_ms),
        after: Duration::from_millis(after_ms),
        // Only a run that asks for a retry may have done nothing.
        has_effect: ending != Ending::Retry || random.chance(500),
        is_careful: random.chance(300),
        ending,
        trouble_before,
        trouble_after,
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
