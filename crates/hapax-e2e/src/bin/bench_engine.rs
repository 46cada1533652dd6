//! What `once()` costs over running the same function in a task, and `#[idempotent]` over `once()`: `cargo xtask bench
//! engine`.
//!
//! All figures are of one run, in alternating rounds, on a memory store. The rate with two tasks is a ratio to that of
//! one, so that it is comparable between machines.
#![allow(clippy::print_stdout, reason = "the figures are what this program is for")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use hapax::{Hapax, MemoryStore, Policy, idempotent};
use hapax_e2e::bench_store::Sample;
use hapax_e2e::goal::{self, Goal};
use serde::Serialize;
use tokio::runtime::Runtime;

/// Executions in one round.
const CALLS: u32 = 20_000;
/// Rounds of each kind; the median counts.
const ROUNDS: usize = 9;
/// The most that `once()` may cost over a bare spawn and join.
const TARGET_MICROS: f64 = 3.0;
/// The most that `#[idempotent]` may cost over `once()` with the same key, input and policy.
const MACRO_TARGET_MICROS: f64 = 0.3;

fn main() -> std::process::ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime can be built");
    let mut bare = Vec::new();
    let mut fresh = Vec::new();
    let mut replay = Vec::new();
    let mut two = Vec::new();
    let mut by_hand = Vec::new();
    let mut by_macro = Vec::new();
    let stores = [store(), Hapax::new(MemoryStore::new()), store(), store(), store()];
    for round in 0..=ROUNDS {
        let took = [
            per_call(&runtime, bare_round()),
            per_call(&runtime, once_round(stores[0].clone(), fresh_keys())),
            per_call(&runtime, once_round(stores[1].clone(), same_key())),
            per_call(&runtime, two_tasks(stores[2].clone(), fresh_keys())),
            per_call(&runtime, by_hand_round(stores[3].clone(), fresh_keys())),
            per_call(&runtime, by_macro_round(stores[4].clone(), fresh_keys())),
        ];
        stores.iter().for_each(|hapax| runtime.block_on(sweep(hapax)));
        // The first round warms up.
        if round > 0 {
            let rounds = [&mut bare, &mut fresh, &mut replay, &mut two, &mut by_hand, &mut by_macro];
            rounds.into_iter().zip(took).for_each(|(rounds, took)| rounds.push(took));
        }
    }
    let added =
        Sample::from_iter(by_macro.iter().zip(&by_hand).map(|(by_macro, by_hand)| by_macro - by_hand));
    let [bare, fresh, replay, two, by_hand, by_macro] =
        [bare, fresh, replay, two, by_hand, by_macro].map(Sample::from_iter);
    print("bare spawn and join", &bare);
    print("once(), fresh keys", &fresh);
    print("once(), replays", &replay);
    print("once(), fresh keys, two tasks", &two);
    print("once(), with an input", &by_hand);
    print("#[idempotent], the same", &by_macro);
    println!("two tasks on two cores do {:.2} times the calls of one", fresh.median() / two.median());
    goal::print(&[
        Goal::at_most("engine-once", fresh.median() - bare.median(), TARGET_MICROS),
        Goal::at_most("macro-added-us", added.median(), MACRO_TARGET_MICROS),
    ])
}

/// Made before the measurement: a caller has its key.
fn fresh_keys() -> Vec<String> {
    (0..CALLS).map(|call| format!("key-{call}")).collect()
}

fn same_key() -> Vec<String> {
    vec!["key".to_owned(); CALLS as usize]
}

/// The records of a round expire before the next one, as in a service that has run for a day, so that memory is reused.
const RETENTION: Duration = Duration::from_millis(1);

fn store() -> Hapax {
    let builder = Hapax::builder(MemoryStore::new());
    builder.policy(Policy::default().retention(RETENTION)).sweep(None).build()
}

async fn sweep(hapax: &Hapax) {
    tokio::time::sleep(2 * RETENTION).await;
    while hapax.store().sweep(usize::MAX).await.is_ok_and(|swept| swept.more) {}
}

async fn bare_round() {
    for _ in 0..CALLS {
        let joined = tokio::spawn(async { Ok::<u32, std::io::Error>(1) }).await;
        let _ = black_box(joined);
    }
}

async fn once_round(hapax: Hapax, keys: Vec<String>) {
    for key in keys {
        let done = hapax.once("bench", key).run(|_cx| async { Ok::<u32, std::io::Error>(1) }).await;
        black_box(done).expect("the store has no faults");
    }
}

/// The input of `charge` as one would write it.
#[derive(Serialize)]
struct Charge<'a> {
    order: &'a str,
    cents: u64,
}

async fn by_hand_round(hapax: Hapax, orders: Vec<String>) {
    for order in orders {
        let once = hapax.once("bench", format!("order:{order}")).input(&Charge { order: &order, cents: 500 });
        let done = once.retention(RETENTION).run(|_cx| async move { charged(&order, 500) }).await;
        black_box(done).expect("the store has no faults");
    }
}

#[idempotent(key = "order:{order}", scope = "bench", retention = "1ms", engine = hapax)]
async fn charge(hapax: &Hapax, order: String, cents: u64) -> Result<u64, std::io::Error> {
    charged(&order, cents)
}

async fn by_macro_round(hapax: Hapax, orders: Vec<String>) {
    for order in orders {
        black_box(charge(&hapax, order, 500).await).expect("the store has no faults");
    }
}

fn charged(order: &str, cents: u64) -> Result<u64, std::io::Error> {
    black_box(order);
    Ok(cents)
}

/// The same total of calls, by two tasks.
async fn two_tasks(hapax: Hapax, mut keys: Vec<String>) {
    let other = tokio::spawn(once_round(hapax.clone(), keys.split_off(keys.len() / 2)));
    let one = tokio::spawn(once_round(hapax, keys));
    let _ = (one.await, other.await);
}

/// Microseconds for each call. The round runs as a task: `block_on` itself has no worker.
fn per_call(runtime: &Runtime, round: impl Future<Output = ()> + Send + 'static) -> f64 {
    let started = Instant::now();
    runtime.block_on(async { tokio::spawn(round).await.expect("the round ends") });
    micros(started.elapsed()) / f64::from(CALLS)
}

fn micros(span: Duration) -> f64 {
    span.as_secs_f64() * 1e6
}

fn print(name: &str, rounds: &Sample) {
    let (median, least, most) = (rounds.median(), rounds.quantile(0.0), rounds.quantile(1.0));
    println!("{name:32} {median:7.3} µs a call (from {least:.3} to {most:.3})");
}
