//! Defects of the engine, which the simulation must find.

use super::{Proof, Tooth};

const ENGINE_RS: &str = "crates/hapax/src/engine.rs";
const KNOWN: &str = "crates/hapax/src/engine/known.rs";
const DETACHED: &str = "crates/hapax/src/engine/detached.rs";
const LEASE_RS: &str = "crates/hapax/src/engine/lease.rs";
const CACHE_RS: &str = "crates/hapax/src/engine/cache.rs";
const WAIT_RS: &str = "crates/hapax/src/engine/wait.rs";
const RECONCILE_RS: &str = "crates/hapax/src/engine/reconcile.rs";

/// Every defect of the engine.
pub const ENGINE_TEETH: &[Tooth] = &[
    Tooth {
        name: "a run is answered before it is recorded",
        file: ENGINE_RS,
        find: "        let fenced = self.record(job, &hold, &finish, started, RECORD_TRIES).await;\n",
        replace: concat!(
            "        if matches!(finish, Finish::Pin(_)) {\n",
            "            self.record_behind(job, hold, finish, started);\n",
            "            return Ok(Execution::Ran { value, recorded: true });\n",
            "        }\n",
            "        let fenced = self.record(job, &hold, &finish, started, RECORD_TRIES).await;\n",
        ),
        breaks: &["S2"],
        caught_by: Proof::Simulation,
    },
    Tooth {
        name: "a dropped caller cancels its run",
        file: DETACHED,
        find: "            runtime.spawn(future);\n",
        replace: "            drop((future, runtime));\n",
        breaks: &["P2"],
        caught_by: Proof::Simulation,
    },
    Tooth {
        name: "a panic releases the key",
        file: ENGINE_RS,
        find: "                let abandon = || self.calls.store.abandon(lease, Reason::Panicked);\n",
        replace: "                let abandon = || self.calls.store.release(lease, None);\n",
        breaks: &["S8", "S4"],
        caught_by: Proof::Simulation,
    },
    Tooth {
        name: "a claim is asked for again with a new nonce",
        file: ENGINE_RS,
        find: "                    in_doubt = true;\n",
        replace: concat!(
            "                    in_doubt = true;\n",
            "                    ask.nonce = Nonce::random();\n",
        ),
        breaks: &["L1"],
        caught_by: Proof::Simulation,
    },
    Tooth {
        name: "a claim in doubt is not given up",
        file: ENGINE_RS,
        find: "                        self.give_up_unanswered(ask);\n",
        replace: "                        let _ = ask;\n",
        breaks: &["L1"],
        caught_by: Proof::Simulation,
    },
    Tooth {
        name: "a store that is down lets everything through",
        file: ENGINE_RS,
        find: "            Err(error) => Attempt::Ended(Err(Refusal::Store(error))),\n",
        replace: concat!(
            "            Err(_) => {\n",
            "                let fence = hapax_core::Fence { nonce: Nonce::random(), attempt: 1 };\n",
            "                let lease = Lease { id: job.key.id, fence, length: job.policy.lease };\n",
            "                Attempt::Ended(self.perform(&job, lease, Instant::now(), work).await)\n",
            "            }\n",
        ),
        breaks: &["S9"],
        caught_by: Proof::Simulation,
    },
    Tooth {
        name: "who lost the record is answered as recorded",
        file: ENGINE_RS,
        find: "                    return Box::pin(self.truth(job)).await;\n",
        replace: "                    return Ok(Execution::Ran { value, recorded: true });\n",
        breaks: &["S2"],
        caught_by: Proof::Simulation,
    },
    Tooth {
        name: "a failed recording is not tried again",
        file: ENGINE_RS,
        find: "                self.record_behind(job, hold, finish, started);\n",
        replace: "                drop(hold);\n",
        breaks: &["L1"],
        caught_by: Proof::Simulation,
    },
    Tooth {
        name: "a lost run blames the store",
        file: KNOWN,
        find: concat!(
            "        let look = self.calls.insist(\"get\", self.calls.timeout, RECORD_TRIES, get).await;\n",
            "        if let Ok(Lookup::Found { record, .. }) = look\n",
        ),
        replace: concat!(
            "        let look = self.calls.insist(\"get\", self.calls.timeout, RECORD_TRIES, get).await;\n",
            "        if let Lookup::Found { record, .. } = look.map_err(Refusal::Store)?\n",
        ),
        breaks: &["P1"],
        caught_by: Proof::Simulation,
    },
    Tooth {
        name: "draining is ignored",
        file: ENGINE_RS,
        find: "        if self.draining.load(Ordering::SeqCst) { Err(Refusal::Draining) } else { Ok(token) }\n",
        replace: "        Ok(token)\n",
        breaks: &["P1"],
        caught_by: Proof::Simulation,
    },
    Tooth {
        name: "a waiter does not wait",
        file: ENGINE_RS,
        find: concat!(
            "                *place = self.waiters.join(id);\n",
            "                place.is_some()\n",
        ),
        replace: concat!("                *place = self.waiters.join(id);\n", "                false\n",),
        breaks: &["P2"],
        caught_by: Proof::Simulation,
    },
    Tooth {
        name: "memory is filled before the store",
        file: ENGINE_RS,
        find: "                let complete = || store.complete(lease, recorded, retention);\n",
        replace: concat!(
            "                self.facts.keep(lease.id, job.fingerprint, recorded, ended_at, retention);\n",
            "                let complete = || store.complete(lease, recorded, retention);\n",
        ),
        breaks: &["S1"],
        caught_by: Proof::Simulation,
    },
    Tooth {
        name: "memory outlives the record",
        file: CACHE_RS,
        find: "            let good_until = since.at + ",
        replace: "            let good_until = Instant::now() + ",
        breaks: &["S1"],
        caught_by: Proof::Simulation,
    },
    Tooth {
        name: "leases are not renewed",
        file: LEASE_RS,
        find: "                tokio::spawn(async move { held.renew(&calls).await });\n",
        replace: "                drop((held, calls));\n",
        breaks: &["P2"],
        caught_by: Proof::Simulation,
    },
    Tooth {
        name: "a renewal that failed is not tried again",
        file: LEASE_RS,
        find: "                self.leases.ms(Instant::now()) + ms(lease.length / 12).max(1)\n",
        replace: "                u64::MAX\n",
        breaks: &["P2"],
        caught_by: Proof::Simulation,
    },
    Tooth {
        name: "the keeper sleeps through what it just renewed",
        file: LEASE_RS,
        find: "        self.leases.nudge_before(next_ms);\n",
        replace: "",
        breaks: &["P2"],
        caught_by: Proof::Simulation,
    },
    Tooth {
        name: "news from the store does not wake a waiter",
        file: WAIT_RS,
        find: "        if look.is_ok() && !is_in_progress {\n",
        replace: "        if look.is_err() && !is_in_progress {\n",
        breaks: &["T1"],
        caught_by: Proof::Simulation,
    },
    Tooth {
        name: "a reconciler that does not know frees the key",
        file: RECONCILE_RS,
        find: "            Ok(Reconciled::Unknown) | Err(_) => return Ok(false),\n",
        replace: "            Ok(Reconciled::Unknown) | Err(_) => Verdict::NotApplied,\n",
        breaks: &["S4"],
        caught_by: Proof::Simulation,
    },
];
