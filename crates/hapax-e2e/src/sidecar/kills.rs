//! The lives of one sidecar: killed after every so many answers, and started again on the same store.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use super::Plan;
use crate::witness::caller::Whereabouts;
use crate::witness::process::Sidecar;
use crate::witness::upstream::{Gate, Upstream, WAIT};

/// A sidecar that lives again and again.
pub(super) struct Lives {
    plan: Plan,
    folder: PathBuf,
    upstream: Upstream,
    sidecar: Option<Sidecar>,
    admin: SocketAddr,
    address: watch::Sender<Option<SocketAddr>>,
}

impl Lives {
    pub(super) async fn begin(plan: &Plan, folder: &Path, upstream: &Upstream) -> Result<Self> {
        let (plan, folder, upstream) = (plan.clone(), folder.to_owned(), upstream.clone());
        let sidecar = start(&plan, &folder, upstream.address).await?;
        let address = watch::Sender::new(Some(sidecar.address));
        Ok(Self { plan, folder, upstream, admin: sidecar.admin, sidecar: Some(sidecar), address })
    }

    /// Where it is, for callers.
    pub(super) fn whereabouts(&self) -> Whereabouts {
        self.address.subscribe()
    }

    /// Its admin API.
    pub(super) fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// Kills it after every so many answers: at any moment, before something happens, or after it has.
    pub(super) async fn end_often(&mut self, mut ended: watch::Receiver<u64>) -> Result<()> {
        let Plan { requests, kills, .. } = self.plan;
        let gates = [Gate::Before, Gate::After, Gate::Open].into_iter().cycle();
        for (kill, gate) in (1..=kills).zip(gates) {
            ended.wait_for(|ended| *ended >= kill * requests / (kills + 1)).await?;
            self.upstream.set(gate);
            if gate != Gate::Open {
                tokio::select! {
                    () = self.upstream.holds() => {}
                    // Nobody is left whom the gate could hold.
                    over = ended.wait_for(|ended| *ended >= requests) => { over?; }
                }
            }
            self.address.send_replace(None);
            let sidecar = self.sidecar.take().context("it is alive between its lives")?;
            spawn_blocking(move || sidecar.kill()).await??;
            self.upstream.set(Gate::Open);
            let sidecar = start(&self.plan, &self.folder, self.upstream.address).await?;
            self.admin = sidecar.admin;
            self.address.send_replace(Some(sidecar.address));
            self.sidecar = Some(sidecar);
        }
        Ok(())
    }
}

async fn start(plan: &Plan, folder: &Path, upstream: SocketAddr) -> Result<Sidecar> {
    let (program, folder) = (plan.program.clone(), folder.to_owned());
    spawn_blocking(move || Sidecar::start(&program, &folder, &settings(upstream))).await?
}

/// The lease is short, so that nobody waits long for a claim that nobody holds.
fn settings(upstream: SocketAddr) -> String {
    format!(
        "upstream = \"http://{upstream}\"\n\
         [log]\nlevel = \"error\"\n\
         [defaults]\nkey = \"required\"\nlease = \"1s\"\n\
         [[route]]\npath = \"{WAIT}\"\nwait = \"30s\"\n"
    )
}
