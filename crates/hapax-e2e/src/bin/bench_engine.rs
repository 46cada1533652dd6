//! What `once()` costs over running the same function in a task: `cargo xtask bench engine`.
//!
//! Everything is measured in one run, in alternating rounds, on a memory store. The rate with two tasks is a
//! ratio to one, so that it means something on any machine.
#![allow(clippy::print_stdout, reason = "the figures are what this program is for")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use hapax::{Hapax, MemoryStore};
use hapax_e2e::goal::Goal;
use tokio::runtime::Runtime;

/// Executions in one round.
const CALLS: u32 = 20_000;
/// Rounds of each kind; the median counts.
const ROUNDS: usize = 9;
/// The most that `once()` may cost over a bare spawn and join.
const TARGET_MICROS: f64 = 3.0;

fn main() -> std::process::ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime can be had");
    let mut bare = Vec::new();
    let mut fresh = Vec::new();
    let mut replay = Vec::new();
    let mut two = Vec::new();
    for _ in 0..ROUNDS {
        bare.push(per_call(&runtime, bare_round()));
        fresh.push(per_call(&runtime, once_round(store(), Keys::Fresh)));
        replay.push(per_call(&runtime, once_round(store(), Keys::Same)));
        two.push(per_call(&runtime, two_tasks()));
    }
    let (bare, fresh, replay, two) =
        (Rounds::of(bare), Rounds::of(fresh), Rounds::of(replay), Rounds::of(two));
    say("bare spawn and join", &bare);
    say("once(), fresh keys", &fresh);
    say("once(), replays", &replay);
    say("once(), fresh keys, two tasks", &two);
    println!("two tasks on two cores do {:.2} times the calls of one", fresh.median / two.median);
    Goal::at_most("engine-once", fresh.median - bare.median, TARGET_MICROS).print_and_exit()
}

enum Keys {
    Fresh,
    Same,
}

fn store() -> Hapax {
    Hapax::new(MemoryStore::new())
}

async fn bare_round() {
    for _ in 0..CALLS {
        let joined = tokio::spawn(async { Ok::<u32, std::io::Error>(1) }).await;
        let _ = black_box(joined);
    }
}

async fn once_round(hapax: Hapax, keys: Keys) {
    for call in 0..CALLS {
        let key = match keys {
            Keys::Fresh => format!("key-{call}"),
            Keys::Same => "key".to_owned(),
        };
        let done = hapax.once("bench", key).run(|_cx| async { Ok::<u32, std::io::Error>(1) }).await;
        black_box(done).expect("nothing stands in the way");
    }
}

/// The same number of calls in all, by two tasks.
async fn two_tasks() {
    let hapax = store();
    let half = |task: u32| {
        let hapax = hapax.clone();
        tokio::spawn(async move {
            for call in 0..CALLS / 2 {
                let key = format!("key-{task}-{call}");
                let done = hapax.once("bench", key).run(|_cx| async { Ok::<u32, std::io::Error>(1) }).await;
                black_box(done).expect("nothing stands in the way");
            }
        })
    };
    let (one, other) = (half(1), half(2));
    let _ = (one.await, other.await);
}

/// Microseconds a call takes. The round runs as a task: `block_on` itself has no worker.
fn per_call(runtime: &Runtime, round: impl Future<Output = ()> + Send + 'static) -> f64 {
    let started = Instant::now();
    runtime.block_on(async { tokio::spawn(round).await.expect("the round ends") });
    micros(started.elapsed()) / f64::from(CALLS)
}

fn micros(span: Duration) -> f64 {
    span.as_secs_f64() * 1e6
}

struct Rounds {
    median: f64,
    least: f64,
    most: f64,
}

impl Rounds {
    fn of(mut rounds: Vec<f64>) -> Self {
        rounds.sort_by(f64::total_cmp);
        Self { median: rounds[rounds.len() / 2], least: rounds[0], most: rounds[rounds.len() - 1] }
    }
}

fn say(what: &str, rounds: &Rounds) {
    println!("{what:32} {:7.3} µs a call (from {:.3} to {:.3})", rounds.median, rounds.least, rounds.most);
}
