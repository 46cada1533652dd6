//! The servers of the stores under test: how they crash, pause and come back.

mod cluster;
mod dynamodb;
mod postgres;
mod redis;

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

pub(super) use self::cluster::ClusterRedis;
pub(super) use self::dynamodb::LocalDynamoDb;
pub(super) use self::postgres::{PooledPostgres, PostgresPair, SinglePostgres};
pub(super) use self::redis::{Losses, SingleRedis, WatchedRedis};

/// How long one call of a store may take. Short, so that a lease covers several.
const TIMEOUT_MS: u64 = 300;
/// Longer than any failover takes.
const FAILOVER_MAX: Duration = Duration::from_secs(60);
/// The pause between checks of a server.
const POLL: Duration = Duration::from_millis(20);

/// A server whose records several sidecars share. Its calls block, and panic where the machine lacks the server.
pub(super) trait Server: Send + Sync {
    /// Its address, or those of all servers that a sidecar is configured with.
    fn addresses(&self) -> Vec<SocketAddr>;

    /// The URL of the store for a sidecar that reaches these addresses at those of `through`.
    fn url(&self, through: &[SocketAddr]) -> String;

    /// The environment of its sidecars.
    fn environment(&self) -> Vec<(&'static str, OsString)> {
        Vec::new()
    }

    /// Kills it with SIGKILL and brings the store back: by a restart, a failover or a promotion.
    fn crash(&self) -> Result<()> {
        bail!("it cannot crash")
    }

    /// Kills the pooler before it with SIGKILL and starts another one.
    fn crash_pooler(&self) -> Result<()> {
        bail!("there is no pooler")
    }

    /// Moves records from one part of it to another. `choice` decides which ones.
    fn move_slots(&self, choice: u64) -> Result<()> {
        bail!("it has one part only, so choice {choice} moves nothing")
    }

    /// Stops it with SIGSTOP; its connections stay open.
    fn pause(&self);

    /// Continues it.
    fn resume(&self);

    /// Waits until the effects of all faults are over: a failover may take seconds longer than its cause.
    fn recover(&self) {}
}

/// Several addresses, as in a URL.
fn listed(addresses: &[SocketAddr]) -> String {
    addresses.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(",")
}

fn loopback(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

fn until(condition: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < FAILOVER_MAX, "timed out waiting until {condition}");
        std::thread::sleep(POLL);
    }
}
