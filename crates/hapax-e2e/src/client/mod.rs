//! Calls of `hapax-client` through the real `hapax serve` to a flaky service, by a process that is killed with SIGKILL and
//! started again on the same journal.
//!
//! The service refuses, resets connections before and after the effect, answers late or cuts answers off
//! ([`rig`](crate::rig)); between the process and the sidecar connections are reset as well. With some kills the machine loses
//! its power too: what the journal has not synced is gone. After each kill the journal must have every call that the service
//! has seen and not answered. At the end the notes of the process, its answers and its journal are compared with the effect
//! log of the service.
//!
//! | file | what it owns |
//! |---|---|
//! | `caller.rs` | the process that is killed, and the names of planted defects |
//! | `work_list.rs` | the notes: which calls were begun, and how they ended |
//! | `killed_journal.rs` | what a kill or a loss of power leaves of a journal, also with a planted defect |
//! | `audit.rs` | notes and journal against the effect log; uncertain calls are settled and made again |

mod audit;
mod caller;
mod killed_journal;
mod work_list;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};

use anyhow::{Result, ensure};
use hapax_testkit::Random;
use tempfile::TempDir;
use tokio::task::spawn_blocking;

use self::caller::list_path;
pub use self::caller::{Calls, ClientDefect, Keys};
use self::killed_journal::KilledJournal;
use crate::fault_proxy::{FaultProxy, NetworkFault};
use crate::rig::child::{CHILD_ARGUMENT, ChildProcess};
use crate::rig::service::{Gate, OrderService};
use crate::rig::sidecar::{SidecarOptions, SidecarSlot};
use crate::sidecar;

/// Notes of a process before its connections are reset, and again before it is killed. Each call has two.
const NOTES_MAX: u64 = 16;
/// Calls for each kill.
const CALLS_A_KILL: u64 = 20;
/// Kills with which the machine loses its power, of a thousand.
const POWER_LOST: u32 = 500;

/// How far the proof goes.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The program that has the calls as its child command.
    pub caller: PathBuf,
    /// The `hapax` between the client and the service.
    pub program: PathBuf,
    /// Logical calls.
    pub calls: u64,
    /// Chooses flaws and the moments of kills.
    pub seed: u64,
    /// Where the keys of the calls come from.
    pub keys: Keys,
    /// The planted defect.
    pub defect: Option<ClientDefect>,
}

/// What the proof measured and found.
#[derive(Clone, Default, Debug)]
pub struct ClientReport {
    /// Calls that took effect more than once.
    pub doubles: Vec<String>,
    /// Calls without an effect or without an end that their caller was told.
    pub missing: Vec<String>,
    /// Calls that were under way at a kill, and that the journal did not have.
    pub forgotten: Vec<String>,
    /// Calls whose caller got another answer than the service gave, or several.
    pub changed: Vec<String>,
    /// Calls under way at a kill that were looked up in the journal.
    pub checked: u64,
    /// How often a call was continued from the journal.
    pub resumed: u64,
    /// Kills.
    pub kills: u64,
    /// Kills while calls were under way.
    pub busy_kills: u64,
    /// Calls that were reported as uncertain.
    pub uncertain: u64,
    /// Of those, settled as applied.
    pub applied: u64,
}

/// Runs the proof.
///
/// # Errors
/// When a process does not start, or the proof itself breaks. What the client does wrong is in the report.
pub async fn run(plan: &Plan) -> Result<ClientReport> {
    let (store, folder) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let service = OrderService::start_flaky(plan.seed)?;
    let options = SidecarOptions {
        program: plan.program.clone(),
        folder: store.path().to_owned(),
        settings: sidecar::settings(service.address),
        environment: Vec::new(),
        starts_max: 1,
    };
    let slot = SidecarSlot::start(options).await?;
    let proxy = FaultProxy::start(slot.sidecar()?.address).await?;
    let mut rig = Rig { plan, folder, service, slot, proxy, random: Random::seeded(plan.seed) };
    let mut report = ClientReport::default();
    let gates = [Gate::BeforeEffect, Gate::BeforeAnswer, Gate::Open].into_iter().cycle();
    for gate in gates.take((plan.calls / CALLS_A_KILL) as usize) {
        rig.kill(gate, &mut report).await?;
    }
    let (mut process, lines) = rig.start()?;
    let end = move || {
        // The pipe ends with the process, and must be read until then.
        while lines.recv().is_ok() {}
        process.wait()
    };
    let end = spawn_blocking(end).await??;
    ensure!(end.success(), "the calls ended with {end}");
    rig.audit(report).await
}

struct Rig<'a> {
    plan: &'a Plan,
    folder: TempDir,
    service: OrderService,
    slot: SidecarSlot,
    proxy: FaultProxy,
    random: Random,
}

impl Rig<'_> {
    /// The next process with calls.
    fn start(&self) -> Result<(ChildProcess, Receiver<String>)> {
        let Plan { caller, calls, keys, defect, .. } = self.plan;
        let mut command = Command::new(caller);
        command.arg(CHILD_ARGUMENT).args(["--to", &self.address().to_string()]);
        command.args(["--calls", &calls.to_string(), "--keys", keys.name()]);
        command.arg("--folder").arg(self.folder.path());
        if let Some(defect) = defect {
            command.args(["--defect", defect.name()]);
        }
        let mut process = ChildProcess::spawn(&mut command)?;
        let (sender, lines) = channel();
        process.send_lines(sender)?;
        Ok((process, lines))
    }

    /// Starts a process, resets its connections after some notes, and kills it after some more, while the gate holds a call.
    async fn kill(&mut self, gate: Gate, report: &mut ClientReport) -> Result<()> {
        let journal = KilledJournal::new(self.folder());
        let before = journal.bytes()?;
        let (mut process, lines) = self.start()?;
        let lines = self.some_notes(lines).await?;
        self.proxy.strike(NetworkFault::Reset);
        self.proxy.heal();
        let lines = self.some_notes(lines).await?;
        let has_ended = spawn_blocking(move || while lines.recv().is_ok() {});
        let kill = async {
            let was_running = process.is_running()?;
            process.kill()?;
            anyhow::Ok(was_running)
        };
        let was_running = self.service.while_held(gate, has_ended, kill).await?;
        match self.plan.defect {
            Some(ClientDefect::JournalForgets) => journal.forget_open().await?,
            Some(ClientDefect::JournalUnsynced) => journal.restore(before.as_deref())?,
            _ if self.random.chance(POWER_LOST) => journal.lose_unsynced()?,
            _ => {}
        }
        self.audit_kill(&journal, report)?;
        report.kills += u64::from(was_running);
        let noted = work_list::read(&list_path(self.folder()))?;
        report.busy_kills += u64::from(was_running && !noted.under_way.is_empty());
        Ok(())
    }

    /// Waits for a random number of notes, or the end of the process.
    async fn some_notes(&mut self, lines: Receiver<String>) -> Result<Receiver<String>> {
        let notes = self.random.within(1..NOTES_MAX);
        let read = move || {
            let _ = (0..notes).try_for_each(|_| lines.recv().map(drop));
            lines
        };
        Ok(spawn_blocking(read).await?)
    }

    /// Where the client finds the sidecar.
    fn address(&self) -> SocketAddr {
        self.proxy.address()
    }

    fn folder(&self) -> &Path {
        self.folder.path()
    }
}
