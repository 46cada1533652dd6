//! [`Injector`]: the sidecars and the store, and the faults that are injected between the answers of the load.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::sync::{Mutex, RwLock};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::sleep;

use super::member::Member;
use super::schedule::ScheduledFault;
use super::server::Server;
use super::{Plan, Setting};
use crate::rig::load::RunningLoad;
use crate::rig::service::{Gate, OrderService};
use crate::rig::sidecar::SidecarAddress;

/// Faults that may happen at the same time.
const CONCURRENT_FAULTS: u64 = 2;
/// How long the gate waits for a handler to hold. All callers may be waiting for something else at that moment.
const HOLD_MAX: Duration = Duration::from_millis(200);

/// Everything under test.
pub(super) struct Injector {
    members: Vec<Mutex<Member>>,
    addresses: Vec<SidecarAddress>,
    /// Read-locked while a sidecar starts, which needs a store that answers; write-locked while the server is harmed.
    server: RwLock<Option<Arc<dyn Server>>>,
    service: OrderService,
    /// There is one gate.
    gate: Mutex<()>,
    /// One move of records at a time.
    moves: Mutex<()>,
}

impl Injector {
    pub(super) async fn start(plan: &Plan, setting: Setting, service: &OrderService) -> Result<Self> {
        let server = spawn_blocking(move || setting.start()).await?;
        let (mut members, mut addresses) = (Vec::new(), Vec::new());
        for number in 1..=setting.sidecars() {
            let has_clock = number == setting.sidecars();
            let member = Member::start(
                &plan.program,
                server.as_deref(),
                setting.has_link(),
                service.address,
                has_clock,
            );
            let member = member.await?;
            addresses.push(member.slot.address());
            members.push(Mutex::new(member));
        }
        let service = service.clone();
        let server = RwLock::new(server);
        Ok(Self { members, addresses, server, service, gate: Mutex::default(), moves: Mutex::default() })
    }

    /// Where callers find the sidecars.
    pub(super) fn addresses(&self) -> Vec<SidecarAddress> {
        self.addresses.clone()
    }

    /// The admin API of one of them.
    pub(super) async fn admin(&self) -> Result<SocketAddr> {
        Ok(self.members[0].lock().await.slot.sidecar()?.admin)
    }

    /// Injects all faults, spread over the requests. Requests are admitted only as far as the faults have come, so that
    /// none of these hits idle sidecars.
    pub(super) async fn inject(
        self,
        faults: Vec<ScheduledFault>,
        requests: u64,
        running: RunningLoad,
    ) -> Result<(Self, RunningLoad)> {
        let step = |done: u64| done * requests / (faults.len() as u64 + 1);
        let progress = Arc::new(Progress {
            thresholds: (1..=faults.len() as u64).map(step).collect(),
            admissions: (0..=faults.len() as u64).map(|done| step(done + CONCURRENT_FAULTS + 1)).collect(),
            faults,
            next: AtomicU64::new(0),
            done: AtomicU64::new(0),
            injector: self,
            running,
        });
        progress.running.admit(progress.admissions[0]);
        let mut tasks = JoinSet::new();
        for _ in 0..CONCURRENT_FAULTS {
            let progress = progress.clone();
            tasks.spawn(async move { progress.run().await });
        }
        while let Some(ended) = tasks.join_next().await {
            ended??;
        }
        let progress = Arc::into_inner(progress).context("all tasks have ended")?;
        Ok((progress.injector, progress.running))
    }

    /// Waits until all faults are over, and what they caused.
    pub(super) async fn recover(&self) -> Result<()> {
        let Some(server) = self.server.write().await.clone() else { return Ok(()) };
        Ok(spawn_blocking(move || server.recover()).await?)
    }

    async fn inject_one(&self, fault: ScheduledFault) -> Result<()> {
        match fault {
            ScheduledFault::Kill { sidecar, gate } => {
                let _store_answers = self.server.read().await;
                let mut member = self.members[sidecar].lock().await;
                self.at(gate, async { member.slot.kill().await }).await?;
                member.slot.restart().await
            }
            ScheduledFault::Pause { sidecar, gate, span } => {
                let member = self.members[sidecar].lock().await;
                self.at(gate, async { member.slot.sidecar()?.pause() }).await?;
                sleep(span).await;
                member.slot.sidecar()?.resume()
            }
            ScheduledFault::Network { sidecar, link, fault, span } => {
                self.members[sidecar].lock().await.strike(link, fault, span).await
            }
            ScheduledFault::Clock { sidecar, offset_s } => {
                self.members[sidecar].lock().await.set_clock(offset_s)
            }
            ScheduledFault::ServerCrash => self.harm(|server| server.crash()).await,
            ScheduledFault::PoolerCrash => self.harm(|server| server.crash_pooler()).await,
            ScheduledFault::Move { choice } => {
                let _one_at_a_time = self.moves.lock().await;
                // The store answers meanwhile, so sidecars may be started.
                let server = self.server.read().await;
                let server = server.clone().context("there is no server")?;
                spawn_blocking(move || server.move_slots(choice)).await?
            }
            ScheduledFault::ServerPause { span } => {
                let server = self.server.write().await;
                let paused = server.clone().context("there is no server")?;
                let resumed = paused.clone();
                spawn_blocking(move || paused.pause()).await?;
                sleep(span).await;
                let resume = move || {
                    resumed.resume();
                    resumed.recover();
                };
                Ok(spawn_blocking(resume).await?)
            }
        }
    }

    /// Harms the server, and waits until the store is back.
    async fn harm(&self, harm: impl FnOnce(&dyn Server) -> Result<()> + Send + 'static) -> Result<()> {
        let server = self.server.write().await;
        let server = server.clone().context("there is no server")?;
        spawn_blocking(move || harm(&*server)).await?
    }

    /// Does something while the gate holds a handler of the service.
    async fn at(&self, gate: Gate, harm: impl Future<Output = Result<()>>) -> Result<()> {
        let _one_at_a_time = self.gate.lock().await;
        self.service.while_held(gate, sleep(HOLD_MAX), harm).await
    }
}

/// The list of faults, and how far it has come.
struct Progress {
    faults: Vec<ScheduledFault>,
    /// How many requests have been answered when each fault begins.
    thresholds: Vec<u64>,
    /// How many requests are admitted when so many faults are over.
    admissions: Vec<u64>,
    next: AtomicU64,
    done: AtomicU64,
    injector: Injector,
    running: RunningLoad,
}

impl Progress {
    async fn run(&self) -> Result<()> {
        let mut ended = self.running.ended();
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed) as usize;
            let Some(fault) = self.faults.get(number) else { return Ok(()) };
            ended.wait_for(|ended| *ended >= self.thresholds[number]).await?;
            let injected = self.injector.inject_one(*fault).await;
            injected.with_context(|| format!("fault {number}, {fault:?}"))?;
            let done = self.done.fetch_add(1, Ordering::Relaxed) as usize + 1;
            self.running.admit(self.admissions[done]);
        }
    }
}
