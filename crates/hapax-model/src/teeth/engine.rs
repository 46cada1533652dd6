//! Planted defects of the engine, for the simulation.

use super::{Proof, Tooth};

const ENGINE_RS: &str = "crates/hapax/src/engine.rs";
const PERMIT_RS: &str = "crates/hapax/src/engine/permit.rs";
const LEASE_RS: &str = "crates/hapax/src/engine/lease.rs";
const RECONCILE_RS: &str = "crates/hapax/src/engine/reconcile.rs";

/// Every defect of the engine.
pub const ENGINE_TEETH: &[Tooth] = &[
    Tooth {
        name: "a run is answered before its outcome is recorded",
        file: PERMIT_RS,
        find: "        let fenced = self.record(&finish, ended_at, RECORD_TRIES).await;\n",
        replace: concat!(
            "        if matches!(finish, Finish::Pin(_)) {\n",
            "            self.record_in_background(finish, ended_at);\n",
            "            return Recording::Applied;\n",
            "        }\n",
            "        let fenced = self.record(&finish, ended_at, RECORD_TRIES).await;\n",
        ),
        breaks: &["S2"],
        caught_by: Proof::Simulation,
    },
    Tooth {
        name: "a panic releases the key",
        file: PERMIT_RS,
        find: "                attempt.record_or_retry(Finish::Uncertain(Reason::Panicked)).await;\n",
        replace: "                attempt.record_or_retry(Finish::Release(None)).await;\n",
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
        find: "                Err(error) => return Err(Refusal::StoreFailed(error)),\n",
        replace: concat!(
            "                Err(_) => {\n",
            "                    let fence = hapax_core::Fence { nonce: Nonce::random(), attempt: 1 };\n",
            "                    let lease = hapax_core::Lease { id, fence, length: operation.policy.lease };\n",
            "                    (Claim::Acquired(lease), self.facts.moment(&id))\n",
            "                }\n",
        ),
        breaks: &["S9"],
        caught_by: Proof::Simulation,
    },
    Tooth {
        name: "a failed recording is not retried",
        file: PERMIT_RS,
        find: "                self.record_in_background(finish, ended_at);\n",
        replace: "                drop(self);\n",
        breaks: &["L1"],
        caught_by: Proof::Simulation,
    },
    Tooth {
        name: "the cache is filled before the store",
        file: PERMIT_RS,
        find: "                let complete = || calls.store.complete(lease, recorded, retention);\n",
        replace: concat!(
            "                facts.keep(lease.id, fingerprint, recorded, ended_at, retention);\n",
            "                let complete = || calls.store.complete(lease, recorded, retention);\n",
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
