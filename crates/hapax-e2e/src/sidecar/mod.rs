//! The real `hapax serve` on a file store under load, killed with SIGKILL and started again on the same store.
//!
//! The service behind it keeps an effect log ([`rig`](crate::rig)). At the end every key is sent once more, and every
//! uncertain record is settled by the log. What the sidecar reports is compared with the log and never replaces it.
//!
//! | file | what it owns |
//! |---|---|
//! | `bench.rs`, `nginx.rs` | the sidecar beside nginx; no part of the proof |
//! | `footprint.rs`, `slow.rs`, `unread.rs` | size, start and memory: idle, with many slow clients, and with unread responses; no part of the proof |
//!
//! Only callers that were asked to retry later wait for a length of time: kills come after so many answers, and when the
//! gate holds a handler.

pub mod bench;
pub mod footprint;
pub(crate) mod nginx;
pub mod slow;
pub mod unread;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use tokio::sync::watch;

use crate::rig::audit::Audit;
use crate::rig::load::{HangUps, Load, RunningLoad};
use crate::rig::service::{Gate, OrderService, WAIT};
use crate::rig::sidecar::{SidecarOptions, SidecarSlot};
use crate::rig::{LoadReport, ServiceDefect};

/// Requests of one key.
const DUPLICATES: u64 = 4;

/// How far the proof goes.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The `hapax` to kill.
    pub program: PathBuf,
    /// Requests that callers send, not counting their retries.
    pub requests: u64,
    /// How often the sidecar is killed.
    pub kills: u64,
    /// A key without a final answer for this long is stuck.
    pub patience: Duration,
    /// The planted defect of the service.
    pub defect: Option<ServiceDefect>,
}

/// Runs the proof.
///
/// # Errors
/// When the sidecar does not start, or the proof itself breaks. What the sidecar does wrong is in the report.
pub async fn run(plan: &Plan) -> Result<LoadReport> {
    let folder = tempfile::tempdir()?;
    let service = OrderService::start(plan.defect)?;
    let options = SidecarOptions {
        program: plan.program.clone(),
        folder: folder.path().to_owned(),
        settings: settings(service.address),
        environment: Vec::new(),
        starts_max: 1,
    };
    let mut slot = SidecarSlot::start(options).await?;
    let load = Load {
        requests: plan.requests,
        duplicates: DUPLICATES,
        patience: plan.patience,
        hang_ups: HangUps::Never,
    };
    let running = RunningLoad::start(&load, &[slot.address()], &service.effects);
    running.admit(plan.requests);
    kill_repeatedly(&mut slot, plan, &service, running.ended()).await?;
    let finished = running.finish().await?;
    let audit = Audit {
        sidecars: vec![slot.address()],
        admin: slot.sidecar()?.admin,
        service,
        patience: plan.patience,
    };
    audit.run(finished).await
}

/// Kills the sidecar after every so many answers: before an effect, before its answer, or at any moment.
async fn kill_repeatedly(
    slot: &mut SidecarSlot,
    plan: &Plan,
    service: &OrderService,
    mut ended: watch::Receiver<u64>,
) -> Result<()> {
    let Plan { requests, kills, .. } = *plan;
    let gates = [Gate::BeforeEffect, Gate::BeforeAnswer, Gate::Open].into_iter().cycle();
    for (kill, gate) in (1..=kills).zip(gates) {
        ended.wait_for(|ended| *ended >= kill * requests / (kills + 1)).await?;
        // Without a request in flight the gate would wait for ever.
        let all_ended = ended.wait_for(|ended| *ended >= requests);
        service.while_held(gate, all_ended, slot.kill()).await?;
        slot.restart().await?;
    }
    Ok(())
}

/// The lease is short, so that a claim of a dead sidecar lapses soon.
pub(crate) fn settings(upstream: SocketAddr) -> String {
    format!(
        "upstream = \"http://{upstream}\"\n\
         [log]\nlevel = \"error\"\n\
         [defaults]\nkey = \"required\"\nlease = \"1s\"\n\
         [[route]]\npath = \"{WAIT}\"\nwait = \"30s\"\n"
    )
}
