//! Several real `hapax serve` on one store, under load, while everything that can fail does: sidecars and servers are
//! killed and paused, networks cut, clocks moved.
//!
//! The service behind them keeps an account of its own ([`witness`](crate::witness)); doubles, lost and wrong answers
//! and stuck keys are found by comparing with it. What a store promises is judged by that; what it does not promise is
//! counted and shown.
//!
//! | file | what it owns |
//! |---|---|
//! | `setting.rs` | the stores under test: how many sidecars, what is promised |
//! | `server.rs` | the servers of those stores: how they crash, pause and come back |
//! | `schedule.rs` | which faults come, in which order: all from one seed |
//! | `slot.rs` | one sidecar with its networks and its clock |
//! | `rig.rs` | carries the faults out, between the answers of the load |
//! | `table.rs` | the figures as a row of the promise table, with the bound, and the goals |
//! | `teeth.rs` | defects that this proof must find |
//!
//! Faults last for lengths of time, because a lapsed lease and a timeout are lengths of time. When they begin depends on
//! how many requests have been answered, and nothing that is judged depends on how fast the machine is.

mod rig;
mod schedule;
mod server;
mod setting;
mod slot;
mod table;
pub mod teeth;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use tokio::time::sleep;

pub use self::schedule::Doses;
pub use self::setting::Setting;
pub use self::table::Row;

use self::rig::Rig;
use self::slot::LEASE;
use crate::crash::seed::Seed;
use crate::witness::audit::Audit;
use crate::witness::ledger::Ledger;
use crate::witness::load::{Load, Manners, Running};
use crate::witness::upstream::Upstream;
use crate::witness::{Lie, Report};

/// Requests of one key.
const DUPLICATES: u64 = 5;
/// Longer than a duplicate waits for the first one's answer, so that most hang-ups are not about that.
const HANG_UP: Duration = Duration::from_millis(2500);
/// So many attempts in a hundred are given up while they are most likely under way.
const FICKLE_PERCENT: u64 = 2;

/// How far the proof goes.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The `hapax` to run.
    pub program: PathBuf,
    /// Requests that callers send, not counting their retries.
    pub requests: u64,
    /// How many faults of each kind.
    pub doses: Doses,
    /// What the schedule and the callers' manners come from.
    pub seed: u64,
    /// A key without an answer for this long is stuck.
    pub patience: Duration,
    /// What the service does wrong.
    pub lie: Option<Lie>,
}

/// Runs the proof on one store.
///
/// # Errors
/// When a sidecar or a server does not start, or the proof itself breaks. What sidecars do wrong is in the report.
pub async fn run(plan: &Plan, setting: Setting) -> Result<Report> {
    let seed = Seed::new(plan.seed);
    let faults = schedule::faults(&seed.part(0), plan.doses, setting);
    let upstream = Upstream::start(Ledger::new(plan.lie))?;
    let rig = Rig::start(plan, setting, &upstream).await?;
    let load = Load {
        requests: plan.requests,
        duplicates: DUPLICATES,
        patience: plan.patience,
        manners: Manners::Hasty { after: HANG_UP, fickle_percent: FICKLE_PERCENT, seed: seed.part(1) },
    };
    let running = Running::start(&load, &rig.whereabouts(), &upstream.ledger);
    let (rig, running) = rig.suffer(faults, plan.requests, running).await?;
    let loaded = running.finish().await?;
    rig.recover().await?;
    // Whoever still holds a claim finishes it or loses it by then, and the service has all that was sent to it.
    sleep(LEASE).await;
    upstream.rest(plan.patience).await;
    upstream.ledger.falsify();
    let audit = Audit {
        sidecars: rig.whereabouts(),
        admin: rig.admin().await?,
        ledger: upstream.ledger.clone(),
        patience: plan.patience,
    };
    audit.run(loaded).await
}
