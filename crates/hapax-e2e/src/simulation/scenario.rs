//! The named scenarios: each a few calls whose results without faults are known.

use std::time::Duration;

use hapax::OnLapse;
use hapax_core::StoreErrorKind;
use hapax_testkit::{Fault, Op, Plan};
use tokio::time::sleep;

use super::LEASE;
use super::event::{KeyId, RunEnd};
use super::report::Play;
use super::work::Work;
use super::world::{Settings, SimCall, World};

/// A short play with known results.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// How many processes take part.
    pub processes: usize,
    /// The world it is played in.
    pub settings: fn(OnLapse) -> Settings,
    /// The scenario's own faults, by process.
    pub planned: fn(usize, Plan) -> Plan,
    /// Whether the engine can still release a claim immediately.
    pub releases_unrun_claims: bool,
    /// The play.
    pub play: for<'a> fn(&'a mut World) -> Play<'a>,
    /// The results of the calls, in their order.
    pub at_most_once: &'static str,
    /// The same when a lapsed claim is taken over.
    pub at_least_once: &'static str,
}

const PLAIN: Scenario = Scenario {
    name: "",
    processes: 2,
    settings: |on_lapse| Settings::plain(2, on_lapse),
    planned: |_, plan| plan,
    releases_unrun_claims: true,
    play: |_| Box::pin(async {}),
    at_most_once: "",
    at_least_once: "",
};

/// A scenario with the same results in both modes.
const fn scenario(
    name: &'static str,
    play: for<'a> fn(&'a mut World) -> Play<'a>,
    told: &'static str,
) -> Scenario {
    Scenario { name, play, at_most_once: told, at_least_once: told, ..PLAIN }
}

/// All of them.
pub const ALL: &[Scenario] = &[
    scenario("fresh run", fresh_run, "ran"),
    scenario("duplicate while running", duplicate_while_running, "ran, in progress, in progress"),
    scenario("duplicate after", duplicate_after, "ran, replayed, replayed"),
    scenario("other fingerprint", other_fingerprint, "ran, mismatch, mismatch, mismatch"),
    scenario("waiter woken", waiter_woken, "ran, replayed, replayed"),
    scenario("waiter timed out", waiter_timed_out, "ran, in progress, in progress, replayed"),
    scenario("long run keeps its lease", long_run, "ran, in progress, replayed"),
    Scenario {
        at_most_once: "ran, uncertain, replayed",
        at_least_once: "replayed, ran, replayed",
        ..scenario("owner paused past its lease", owner_paused, "")
    },
    Scenario {
        at_most_once: "none, in progress, uncertain, uncertain",
        at_least_once: "none, in progress, ran, replayed",
        ..scenario("owner crashed", owner_crashed, "")
    },
    Scenario {
        planned: |process, plan| fail_first(process, plan, Op::Complete, 8),
        ..scenario("completion store failure", completion_fails, "ran unrecorded, in progress, replayed")
    },
    scenario("release then retry", release_then_retry, "failed, ran, replayed"),
    Scenario {
        planned: |process, plan| fail_first(process, plan, Op::Release, 8),
        releases_unrun_claims: false,
        ..scenario("release store failure", release_fails, "failed, in progress, ran")
    },
    Scenario {
        planned: late_owner_calls,
        releases_unrun_claims: false,
        at_most_once: "ran unrecorded, uncertain, replayed, replayed",
        at_least_once: "ran unrecorded, ran, replayed, replayed",
        ..scenario("settle against a late owner", settle_late_owner, "")
    },
    Scenario {
        planned: late_owner_calls,
        releases_unrun_claims: false,
        at_most_once: "failed, uncertain, ran, replayed",
        at_least_once: "failed, ran, replayed, replayed",
        ..scenario("settle against a late release", settle_late_release, "")
    },
    Scenario {
        settings: |on_lapse| Settings {
            retention: 3 * LEASE,
            uncertain_retention: LEASE,
            ..Settings::plain(2, on_lapse)
        },
        ..scenario("sweep against a claim", sweep_against_claim, "ran, in progress, replayed, ran, replayed")
    },
    Scenario {
        at_most_once: "uncertain, uncertain, replayed",
        at_least_once: "uncertain, ran, replayed",
        ..scenario("handler panics", handler_panics, "")
    },
    scenario("final error", final_error, "failed, failed before"),
    Scenario {
        at_most_once: "none, replayed, replayed",
        at_least_once: "none, ran, replayed",
        ..scenario("reconcile after a crash", reconcile, "")
    },
    scenario("deadline", deadline, "deadline, replayed"),
    scenario("drain", drain, "ran, draining, replayed"),
    Scenario {
        settings: |on_lapse| Settings { cache_bytes: 1 << 20, ..Settings::plain(2, on_lapse) },
        ..scenario("answers from memory", from_memory, "ran, replayed, mismatch, replayed")
    },
    Scenario {
        settings: |on_lapse| Settings {
            cache_bytes: 1 << 20,
            retention: 2 * LEASE,
            ..Settings::plain(2, on_lapse)
        },
        ..scenario("memory forgets in time", memory_forgets, "ran, replayed, ran, replayed")
    },
    scenario("callers hang up", callers_hang_up, "none, none, replayed"),
];

/// The first `calls` calls of `op` by the first process fail.
fn fail_first(process: usize, plan: Plan, op: Op, calls: u64) -> Plan {
    let fault = Fault::ErrorBefore(StoreErrorKind::Unavailable);
    if process > 0 {
        return plan;
    }
    (1..=calls).fold(plan, |plan, nth| plan.at_nth(op, nth, fault))
}

/// The first process cannot finish or renew for a while, so that its lease lapses after its run has ended.
fn late_owner_calls(process: usize, plan: Plan) -> Plan {
    let plan = fail_first(process, plan, Op::Complete, 11);
    let plan = fail_first(process, plan, Op::Release, 11);
    fail_first(process, plan, Op::Renew, 30)
}

async fn rest(ms: u64) {
    sleep(Duration::from_millis(ms)).await;
}

fn short() -> SimCall {
    SimCall::of(Work::taking(20))
}

fn run_of(ms: u64) -> SimCall {
    SimCall::of(Work::taking(ms))
}

fn ending(ending: RunEnd) -> SimCall {
    SimCall::of(Work::taking(20).ending(ending))
}

fn fresh_run(world: &mut World) -> Play<'_> {
    Box::pin(async {
        world.call(0, short());
        world.finish().await;
    })
}

fn duplicate_while_running(world: &mut World) -> Play<'_> {
    Box::pin(async {
        world.call(0, run_of(300));
        rest(100).await;
        world.call(0, short());
        world.call(1, short());
    })
}

fn duplicate_after(world: &mut World) -> Play<'_> {
    Box::pin(async {
        world.call(0, short());
        world.finish().await;
        world.call(0, short());
        world.call(1, short());
    })
}

fn other_fingerprint(world: &mut World) -> Play<'_> {
    Box::pin(async {
        world.call(0, run_of(300));
        rest(100).await;
        world.call(0, short().input(1));
        world.call(1, short().input(1).waiting(1000));
        world.finish().await;
        world.call(1, short().input(1));
    })
}

fn waiter_woken(world: &mut World) -> Play<'_> {
    Box::pin(async {
        world.call(0, run_of(400));
        rest(100).await;
        world.call(0, short().waiting(5000));
        world.call(1, short().waiting(5000));
    })
}

fn waiter_timed_out(world: &mut World) -> Play<'_> {
    Box::pin(async {
        world.call(0, run_of(900));
        rest(100).await;
        world.call(0, short().waiting(300));
        world.call(1, short().waiting(600));
        world.finish().await;
        world.call(1, short());
    })
}

fn long_run(world: &mut World) -> Play<'_> {
    Box::pin(async {
        world.call(0, run_of(3 * 1200));
        rest(2 * 1200).await;
        world.call(1, short());
        world.finish().await;
        world.call(1, short());
    })
}

fn owner_paused(world: &mut World) -> Play<'_> {
    Box::pin(async {
        world.call(0, run_of(400));
        rest(100).await;
        world.pause(0, 3 * LEASE);
        rest(2 * 1200).await;
        world.call(1, short());
        world.finish().await;
        world.call(1, short());
    })
}

fn owner_crashed(world: &mut World) -> Play<'_> {
    Box::pin(async {
        world.call(0, run_of(400));
        rest(300).await;
        world.crash(0);
        world.call(1, short());
        rest(2 * 1200).await;
        world.call(1, short());
        world.finish().await;
        world.restart(0);
        world.call(0, short());
    })
}

fn completion_fails(world: &mut World) -> Play<'_> {
    Box::pin(async {
        world.call(0, short());
        rest(100).await;
        world.call(1, short());
        rest(3000).await;
        world.call(1, short());
    })
}

fn release_then_retry(world: &mut World) -> Play<'_> {
    Box::pin(async {
        world.call(0, ending(RunEnd::Retry));
        world.finish().await;
        world.call(1, short());
        world.finish().await;
        world.call(0, short());
    })
}

fn release_fails(world: &mut World) -> Play<'_> {
    Box::pin(async {
        world.call(0, ending(RunEnd::Retry));
        rest(100).await;
        world.call(1, short());
        rest(3000).await;
        world.call(1, short());
    })
}

/// The owner's run has ended, but it cannot be recorded before its lease lapses.
fn settle_late_owner(world: &mut World) -> Play<'_> {
    Box::pin(async {
        world.call(0, short());
        rest(1600).await;
        world.call(1, short());
        rest(100).await;
        world.settle(1, KeyId(0)).await;
        world.call(1, short());
        rest(5000).await;
        world.call(0, short());
    })
}

fn settle_late_release(world: &mut World) -> Play<'_> {
    Box::pin(async {
        world.call(0, ending(RunEnd::Retry));
        rest(1600).await;
        world.call(1, short());
        rest(100).await;
        world.settle(1, KeyId(0)).await;
        world.call(1, run_of(400));
        rest(5000).await;
        world.call(0, short());
    })
}

fn sweep_against_claim(world: &mut World) -> Play<'_> {
    Box::pin(async {
        world.call(0, run_of(2 * 1200));
        rest(1900).await;
        // The claim is older than its uncertain retention, but it has not lapsed.
        world.sweep(1).await;
        world.call(1, short());
        world.finish().await;
        world.sweep(1).await;
        world.call(1, short());
        rest(4 * 1200).await;
        world.call(0, run_of(100));
        world.sweep(1).await;
        world.finish().await;
        world.call(1, short());
    })
}

fn handler_panics(world: &mut World) -> Play<'_> {
    Box::pin(async {
        world.call(0, ending(RunEnd::Panic));
        world.finish().await;
        world.call(1, short());
        world.finish().await;
        world.settle(1, KeyId(0)).await;
        world.call(1, short());
    })
}

fn final_error(world: &mut World) -> Play<'_> {
    Box::pin(async {
        world.call(0, ending(RunEnd::Final));
        world.finish().await;
        world.call(1, short());
    })
}

fn reconcile(world: &mut World) -> Play<'_> {
    Box::pin(async {
        world.call(0, run_of(400));
        rest(300).await;
        world.crash(0);
        rest(2 * 1200).await;
        world.call(1, SimCall { reconciles: true, ..short() });
        world.finish().await;
        world.call(1, short());
    })
}

fn deadline(world: &mut World) -> Play<'_> {
    Box::pin(async {
        world.call(0, SimCall { deadline: Some(Duration::from_millis(200)), ..run_of(400) });
        world.finish().await;
        world.call(1, short().waiting(2000));
    })
}

fn drain(world: &mut World) -> Play<'_> {
    Box::pin(async {
        world.call(0, run_of(400));
        rest(100).await;
        world.drain(0, Duration::ZERO).await;
        world.call(0, short());
        world.finish().await;
        world.call(1, short());
    })
}

fn from_memory(world: &mut World) -> Play<'_> {
    Box::pin(async {
        world.call(0, short());
        world.finish().await;
        world.call(0, short());
        world.call(0, short().input(1));
        world.call(1, short());
    })
}

fn memory_forgets(world: &mut World) -> Play<'_> {
    Box::pin(async {
        world.call(0, short());
        rest(100).await;
        world.call(1, short());
        // Pinned at 20 ms, over five milliseconds ago.
        rest(2 * 1200 - 75).await;
        world.call(1, short());
        world.call(0, short().waiting(1000));
    })
}

fn callers_hang_up(world: &mut World) -> Play<'_> {
    Box::pin(async {
        world.call(0, run_of(400));
        world.call(0, short().waiting(2000));
        rest(100).await;
        world.hang_up(0);
        world.call(1, short().waiting(2000));
    })
}
