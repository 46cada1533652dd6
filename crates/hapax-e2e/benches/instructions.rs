//! Instruction counts of one operation on the memory store: steady where the clock is not.
//!
//! Run by `cargo xtask bench engine`, with valgrind and gungraun's runner.
#![allow(missing_docs, clippy::unwrap_used, reason = "gungraun's macros make undocumented items")]

use std::hint::black_box;
use std::sync::Arc;

use gungraun::prelude::*;
use hapax::{Hapax, Keeper, MemoryStore};
use tokio::runtime::Runtime;

/// A runtime and an engine that has done its first operations, so that one-time work is not counted.
fn warm() -> (Runtime, Hapax) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be built");
    let hapax = runtime.block_on(async {
        let builder = Hapax::builder(MemoryStore::new()).keeper(Keeper::SharedRuntime).sweep(None);
        let hapax = builder.build();
        for call in 0..100 {
            once(&hapax, &format!("warm {call}")).await;
        }
        hapax
    });
    (runtime, hapax)
}

async fn once(hapax: &Hapax, key: &str) {
    let done = hapax.once("bench", key).run(|_cx| async { Ok::<u32, std::io::Error>(1) }).await;
    black_box(done).expect("the store has no faults");
}

#[library_benchmark]
#[bench::warm(setup = warm)]
fn bare_spawn_and_join((runtime, hapax): (Runtime, Hapax)) -> (Runtime, Hapax) {
    let joined = runtime.block_on(async { tokio::spawn(async { Ok::<u32, std::io::Error>(1) }).await });
    let _ = black_box(joined);
    (runtime, hapax)
}

#[library_benchmark]
#[bench::warm(setup = warm)]
fn once_fresh((runtime, hapax): (Runtime, Hapax)) -> (Runtime, Hapax) {
    runtime.block_on(once(&hapax, "fresh"));
    (runtime, hapax)
}

#[library_benchmark]
#[bench::warm(setup = warm)]
fn once_replay((runtime, hapax): (Runtime, Hapax)) -> (Runtime, Hapax) {
    runtime.block_on(once(&hapax, "warm 1"));
    (runtime, hapax)
}

library_benchmark_group!(name = engine, benchmarks = [bare_spawn_and_join, once_fresh, once_replay]);
main!(library_benchmark_groups = engine);
