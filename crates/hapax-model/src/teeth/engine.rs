//! Planted defects of the engine, for the simulation.

use super::{Proof, Tooth};

const ENGINE_RS: &str = "crates/hapax/src/engine.rs";
const LEASE_RS: &str = "crates/hapax/src/engine/lease.rs";
const RECONCILE_RS: &str = "crates/hapax/src/engine/reconcile.rs";

/// Every defect of the engine.
pub const ENGINE_TEETH: &[Tooth] = &[
    Tooth {
        name: "a run is answered before its outcome is recorded",
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
        name: "a panic releases the key",
        file: ENGINE_RS,
        find: "                let abandon = || self.calls.store.abandon(lease, Reason::Panicked);\n",
        replace: "                let abandon = || self.calls.store.release(lease, None);\n",
        breaks: &["S8", "S4"],
        caught_by: Proof::Simulation,
    },
    Tooth {
        name: "a claim is retried with a new nonce",
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
        name: "operations run without a claim while the store is down",
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
        name: "a failed recording is not retried",
        file: ENGINE_RS,
        find: "                self.record_behind(job, hold, finish, started);\n",
        replace: "                drop(hold);\n",
        breaks: &["L1"],
        caught_by: Proof::Simulation,
    },
    Tooth {
        name: "the cache is filled before the store",
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
        name: "leases are not renewed",
        file: LEASE_RS,
        find: "                tokio::spawn(async move { held.renew(&calls).await });\n",
        replace: "                drop((held, calls));\n",
        breaks: &["P2"],
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
