//! The sidecar on its durable file store against nginx as a plain reverse proxy: the same service and the same load, by
//! turns.
//!
//! The service and the driver have a thread each, on different cores; the proxies run on both.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tempfile::TempDir;

use super::nginx::Nginx;
use crate::bench_http::driver::{self, Load};
use crate::bench_http::{Key, Server};
use crate::rig::sidecar::Sidecar;

/// The kernel reports CPU times in hundredths of a second.
const TICKS_A_SECOND: f64 = 100.0;

/// Rounds in which nginx is tried with each number of workers; the first is cold and does not count.
const TRIALS: usize = 4;

/// One proxy under one load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scenario {
    /// Nginx.
    Nginx,
    /// The sidecar, requests without a key.
    Pass,
    /// The sidecar, a new key with every request.
    Fresh,
    /// The sidecar, replays.
    Replay,
}

impl Scenario {
    /// All of them, nginx first.
    pub const ALL: [Self; 4] = [Self::Nginx, Self::Pass, Self::Fresh, Self::Replay];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Pass => "hapax serve, no key",
            Self::Fresh => "hapax serve, fresh keys",
            Self::Replay => "hapax serve, replays",
        }
    }

    fn key(self) -> Key {
        match self {
            Self::Nginx | Self::Pass => Key::None,
            Self::Fresh => Key::Fresh,
            Self::Replay => Key::Known,
        }
    }
}

/// The figures of one round of a scenario.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    /// Requests a second.
    pub rate: f64,
    /// The 99th percentile of the latency, in milliseconds.
    pub p99_millis: f64,
    /// The proxy's CPU time, in microseconds for each request.
    pub cpu_micros: f64,
}

/// Both proxies in front of one service.
pub struct Bench {
    sidecar: Sidecar,
    nginx: Nginx,
    /// The number of nginx workers with which it is fastest.
    pub workers: usize,
    _folders: [TempDir; 3],
}

impl Bench {
    /// Starts everything, and measures with how many workers nginx is faster, in rounds of `span`.
    ///
    /// # Errors
    /// When one of them does not start.
    pub fn start(program: &Path, span: Duration) -> Result<Self> {
        let upstream = Server::start(async |app| app).address;
        let folders = [tempfile::tempdir()?, tempfile::tempdir()?, tempfile::tempdir()?];
        let mut candidates = Vec::new();
        for (workers, folder) in (1..).zip(&folders[..2]) {
            candidates.push((0.0, workers, Nginx::start(folder.path(), upstream, workers)?));
        }
        // By turns, so that other load of the machine hits both alike.
        for trial in 0..TRIALS {
            for (rates, _, nginx) in &mut candidates {
                let driven = round(nginx.address, nginx.id(), Key::None, span)?;
                *rates += if trial == 0 { 0.0 } else { driven.rate };
            }
        }
        let fastest = candidates.into_iter().max_by(|one, other| one.0.total_cmp(&other.0));
        let (_, workers, nginx) = fastest.context("there are two")?;
        let settings = format!("upstream = \"http://{upstream}\"\n[log]\nlevel = \"error\"\n");
        let sidecar = Sidecar::start(program, folders[2].path(), &settings)?;
        Ok(Self { sidecar, nginx, workers, _folders: folders })
    }

    /// Drives one scenario for `span`.
    ///
    /// # Errors
    /// When the kernel does not report the proxy's CPU time.
    pub fn round(&self, scenario: Scenario, span: Duration) -> Result<Round> {
        let (address, process) = match scenario {
            Scenario::Nginx => (self.nginx.address, self.nginx.id()),
            Scenario::Pass | Scenario::Fresh | Scenario::Replay => (self.sidecar.address, self.sidecar.id()),
        };
        round(address, process, scenario.key(), span)
    }
}

fn round(to: SocketAddr, process: u32, key: Key, span: Duration) -> Result<Round> {
    let load = Load { to, path: driver::ORDERS, key, span };
    driver::warm_up(&load)?;
    let before = cpu_seconds(process)?;
    let driven = driver::drive(&load)?;
    let cpu = cpu_seconds(process)? - before;
    let requests = driven.requests as f64;
    Ok(Round {
        rate: requests / driven.took.as_secs_f64(),
        p99_millis: driven.p99.as_secs_f64() * 1e3,
        cpu_micros: cpu * 1e6 / requests,
    })
}

/// The CPU time of a process and its children.
pub(crate) fn cpu_seconds(process: u32) -> Result<f64> {
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children"))?;
    let children: Vec<u32> = children.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    let ticks = [process].into_iter().chain(children).map(ticks).sum::<Result<u64>>()?;
    Ok(ticks as f64 / TICKS_A_SECOND)
}

/// The fields after the name, which is in parentheses and may contain any text, begin with the third.
fn ticks(process: u32) -> Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    let (_, fields) = stat.rsplit_once(") ").context("a process has a name")?;
    let times = fields.split(' ').skip(11).take(2).map(str::parse::<u64>);
    Ok(times.sum::<Result<u64, _>>()?)
}
