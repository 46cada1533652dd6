//! Several real `hapax serve` on one store, under load and every fault: sidecars and servers are killed and paused,
//! networks cut, clocks moved.
//!
//! The service behind them keeps an effect log ([`rig`](crate::rig)), and the audit finds doubles, lost and wrong answers
//! and stuck keys by it. What a store promises is a goal; what it does not promise is counted and printed.
//!
//! | file | what it owns |
//! |---|---|
//! | `setting.rs` | the stores under test: how many sidecars, what is promised |
//! | `server.rs` | the servers of those stores: how they crash, pause and come back |
//! | `schedule.rs` | the faults and their order, from one seed |
//! | `member.rs` | one sidecar with its networks and its clock |
//! | `injector.rs` | injects the faults between the answers of the load |
//! | `table.rs` | the figures as a row of the promise table, with the bound, and the goals |
//! | `teeth.rs` | planted defects that this proof must find |
//!
//! Faults last for lengths of time, because a lapsed lease and a timeout are lengths of time. They begin after so many
//! answers, and no verdict depends on how fast the machine is.

mod injector;
mod member;
mod schedule;
mod server;
mod setting;
mod table;
pub mod teeth;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use hapax_testkit::Random;
use tokio::time::sleep;

pub use self::schedule::Doses;
pub use self::setting::Setting;
pub use self::table::Row;

use self::injector::Injector;
use self::member::LEASE;
use crate::rig::audit::Audit;
use crate::rig::load::{HangUps, Load, RunningLoad};
use crate::rig::service::OrderService;
use crate::rig::{LoadReport, ServiceDefect};

/// Requests of one key.
const DUPLICATES: u64 = 5;
/// Longer than a duplicate waits for the first one's answer, so that most hang-ups have another cause.
const HANG_UP: Duration = Duration::from_millis(2500);
/// So many attempts in a thousand hang up early, while most are in flight.
const EARLY_PER_MILLE: u32 = 20;

/// How far the proof goes.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The `hapax` to run.
    pub program: PathBuf,
    /// Requests that callers send, not counting their retries.
    pub requests: u64,
    /// How many faults of each kind.
    pub doses: Doses,
    /// Decides the schedule and the hang-ups.
    pub seed: u64,
    /// A key without a final answer for this long is stuck.
    pub patience: Duration,
    /// The planted defect of the service.
    pub defect: Option<ServiceDefect>,
}

/// Runs the proof on one store.
///
/// # Errors
/// When a sidecar or a server does not start, or the proof itself breaks. What sidecars do wrong is in the report.
pub async fn run(plan: &Plan, setting: Setting) -> Result<LoadReport> {
    let random = Random::seeded(plan.seed);
    let faults = schedule::faults(random.fork(0), plan.doses, setting);
    let service = OrderService::start(plan.defect)?;
    let injector = Injector::start(plan, setting, &service).await?;
    let load = Load {
        requests: plan.requests,
        duplicates: DUPLICATES,
        patience: plan.patience,
        hang_ups: HangUps::After { wait: HANG_UP, early_per_mille: EARLY_PER_MILLE, random: random.fork(1) },
    };
    let running = RunningLoad::start(&load, &injector.addresses(), &service.effects);
    let (injector, running) = injector.inject(faults, plan.requests, running).await?;
    let finished = running.finish().await?;
    injector.recover().await?;
    // By then the owner of a claim has finished it or lost it, and all requests have reached the service.
    sleep(LEASE).await;
    let audit = Audit {
        sidecars: injector.addresses(),
        admin: injector.admin().await?,
        service,
        patience: plan.patience,
    };
    audit.run(finished).await
}
