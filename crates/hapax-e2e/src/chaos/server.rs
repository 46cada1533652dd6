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
/// A failover that has not come about by then never will.
const FAILOVER_MAX: Duration = Duration::from_secs(60);
/// How long to wait before a server is asked again how far it is.
const ASK_AGAIN: Duration = Duration::from_millis(20);

/// A server whose records several sidecars share. Its calls block, and panic where the machine lacks the server.
pub(super) trait Server: Send + Sync {
    /// Where it listens, or where each of them does that a sidecar is told of.
    fn addresses(&self) -> Vec<SocketAddr>;

    /// The URL of the store for a sidecar that reaches these addresses at those of `through`.
    fn url(&self, through: &[SocketAddr]) -> String;

    /// What a sidecar must find in its environment.
    fn environment(&self) -> Vec<(&'static str, OsString)> {
        Vec::new()
    }

    /// Kills it with SIGKILL and brings the store back, in whatever way this one comes back.
    fn crash(&self) -> Result<()> {
        bail!("it does not come back")
    }

    /// Kills the pooler before it with SIGKILL and starts another one.
    fn crash_pooler(&self) -> Result<()> {
        bail!("there is no pooler")
    }

    /// Moves records from one part of it to another. Which ones is for `choice` to say.
    fn move_slots(&self, choice: u64) -> Result<()> {
        bail!("there is one part only, and no choice {choice} of it")
    }

    /// Stops it with SIGSTOP; its connections stay open.
    fn pause(&self);

    /// Lets it go on.
    fn resume(&self);

    /// Waits until nothing goes on any more that a fault began: a failover may take seconds longer than what caused it.
    fn recover(&self) {}
}

/// Several addresses as URLs have them.
fn listed(addresses: &[SocketAddr]) -> String {
    addresses.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(",")
}

fn loopback(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < FAILOVER_MAX, "waited in vain until {what}");
        std::thread::sleep(ASK_AGAIN);
    }
}
