//! [`Rig`]: the sidecars and the store, and the faults that are done to them between the answers of the load.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::sync::{Mutex, RwLock, watch};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{sleep, timeout};

use super::schedule::Fault;
use super::server::Server;
use super::slot::Slot;
use super::{Plan, Setting};
use crate::witness::caller::Whereabouts;
use crate::witness::load::Running;
use crate::witness::upstream::{Gate, Upstream};

/// Faults that may happen at the same time.
const LANES: u64 = 2;
/// How long the gate waits for somebody to hold. Callers may just then all be busy with something else.
const HOLD_MAX: Duration = Duration::from_millis(200);

/// Everything under test.
pub(super) struct Rig {
    slots: Vec<Mutex<Slot>>,
    places: Vec<Arc<watch::Sender<Option<SocketAddr>>>>,
    /// Whoever starts a sidecar needs a store that answers; whoever harms the server has it for himself.
    server: RwLock<Option<Arc<dyn Server>>>,
    upstream: Upstream,
    /// There is one gate.
    gate: Mutex<()>,
    /// Records are moved by one at a time.
    moves: Mutex<()>,
}

impl Rig {
    pub(super) async fn start(plan: &Plan, setting: Setting, upstream: &Upstream) -> Result<Self> {
        let server = spawn_blocking(move || setting.start()).await?;
        let (mut slots, mut places) = (Vec::new(), Vec::new());
        for number in 1..=setting.sidecars() {
            let has_clock = number == setting.sidecars();
            let slot = Slot::start(
                &plan.program,
                server.as_deref(),
                setting.has_link(),
                upstream.address,
                has_clock,
            );
            let slot = slot.await?;
            places.push(slot.place());
            slots.push(Mutex::new(slot));
        }
        let upstream = upstream.clone();
        let server = RwLock::new(server);
        Ok(Self { slots, places, server, upstream, gate: Mutex::default(), moves: Mutex::default() })
    }

    /// Where the sidecars are, for callers.
    pub(super) fn whereabouts(&self) -> Vec<Whereabouts> {
        self.places.iter().map(|place| place.subscribe()).collect()
    }

    /// The admin API of one of them.
    pub(super) async fn admin(&self) -> Result<SocketAddr> {
        Ok(self.slots[0].lock().await.sidecar()?.admin)
    }

    /// Does all faults, spread over the requests. Callers are let on only as far as the faults have come, so that none
    /// of these happens to sidecars that have nothing to do.
    pub(super) async fn suffer(
        self,
        faults: Vec<Fault>,
        requests: u64,
        running: Running,
    ) -> Result<(Self, Running)> {
        let step = |done: u64| done * requests / (faults.len() as u64 + 1);
        let lanes = Arc::new(Lanes {
            thresholds: (1..=faults.len() as u64).map(step).collect(),
            admissions: (0..=faults.len() as u64).map(|done| step(done + LANES + 1)).collect(),
            faults,
            next: AtomicU64::new(0),
            done: AtomicU64::new(0),
            rig: self,
            running,
        });
        lanes.running.admit(lanes.admissions[0]);
        let mut tasks = JoinSet::new();
        for _ in 0..LANES {
            let lanes = lanes.clone();
            tasks.spawn(async move { lanes.run().await });
        }
        while let Some(ended) = tasks.join_next().await {
            ended??;
        }
        let lanes = Arc::into_inner(lanes).context("all lanes have ended")?;
        Ok((lanes.rig, lanes.running))
    }

    /// Waits until all faults are over, and what they began.
    pub(super) async fn recover(&self) -> Result<()> {
        let Some(server) = self.server.write().await.clone() else { return Ok(()) };
        Ok(spawn_blocking(move || server.recover()).await?)
    }

    async fn happen(&self, fault: Fault) -> Result<()> {
        match fault {
            Fault::Kill { sidecar, gate } => {
                let _store_answers = self.server.read().await;
                let mut slot = self.slots[sidecar].lock().await;
                self.at(gate, async { slot.kill().await }).await?;
                slot.revive().await
            }
            Fault::Pause { sidecar, gate, span } => {
                let slot = self.slots[sidecar].lock().await;
                self.at(gate, async { slot.sidecar()?.pause() }).await?;
                sleep(span).await;
                slot.sidecar()?.resume()
            }
            Fault::Network { sidecar, link, fault, span } => {
                self.slots[sidecar].lock().await.strike(link, fault, span).await
            }
            Fault::Clock { sidecar, offset_s } => self.slots[sidecar].lock().await.set_clock(offset_s),
            Fault::ServerCrash => self.harm(|server| server.crash()).await,
            Fault::PoolerCrash => self.harm(|server| server.crash_pooler()).await,
            Fault::Move { choice } => {
                let _one_at_a_time = self.moves.lock().await;
                // The store answers all the while, so sidecars may be started.
                let server = self.server.read().await;
                let server = server.clone().context("there is no server")?;
                spawn_blocking(move || server.move_slots(choice)).await?
            }
            Fault::ServerPause { span } => {
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

    /// Does something to the server that takes until the store is back.
    async fn harm(&self, harm: impl FnOnce(&dyn Server) -> Result<()> + Send + 'static) -> Result<()> {
        let server = self.server.write().await;
        let server = server.clone().context("there is no server")?;
        spawn_blocking(move || harm(&*server)).await?
    }

    /// Does something while the gate holds a handler of the service.
    async fn at(&self, gate: Gate, harm: impl Future<Output = Result<()>>) -> Result<()> {
        let _one_at_a_time = self.gate.lock().await;
        self.upstream.set(gate);
        if gate != Gate::Open {
            let _ = timeout(HOLD_MAX, self.upstream.holds()).await;
        }
        let done = harm.await;
        self.upstream.set(Gate::Open);
        done
    }
}

/// Several faults at a time, from one list.
struct Lanes {
    faults: Vec<Fault>,
    /// How many requests have been answered when each fault begins.
    thresholds: Vec<u64>,
    /// How far callers are let on when so many faults are over.
    admissions: Vec<u64>,
    next: AtomicU64,
    done: AtomicU64,
    rig: Rig,
    running: Running,
}

impl Lanes {
    async fn run(&self) -> Result<()> {
        let mut ended = self.running.ended();
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed) as usize;
            let Some(fault) = self.faults.get(number) else { return Ok(()) };
            ended.wait_for(|ended| *ended >= self.thresholds[number]).await?;
            self.rig.happen(*fault).await.with_context(|| format!("fault {number}, {fault:?}"))?;
            let done = self.done.fetch_add(1, Ordering::Relaxed) as usize + 1;
            self.running.admit(self.admissions[done]);
        }
    }
}
