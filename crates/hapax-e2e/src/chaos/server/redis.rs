//! One Redis server, and two that Sentinel watches.

use std::net::SocketAddr;

use anyhow::Result;
use hapax_testkit::servers::{Aof, RedisServer};
use parking_lot::Mutex;

use super::{Server, TIMEOUT_MS, listed, loopback, until};

/// The sentinel's name of the primary.
const NAME: &str = "shop";

/// One Redis server, which is restarted on its own files.
pub(in crate::chaos) struct SingleRedis {
    server: RedisServer,
    losses: Losses,
}

/// What sidecars do when the server has lost records.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::chaos) enum Losses {
    /// They stop. Where losses are ruled out, a loss is a fault.
    Stop,
    /// They go on, as an operator can configure. The cost of that is measured.
    Accept,
}

impl Losses {
    /// The option of the URL.
    pub(super) fn option(self) -> &'static str {
        match self {
            Self::Stop => "",
            Self::Accept => "&amnesia=accept",
        }
    }
}

impl SingleRedis {
    pub(in crate::chaos) fn start(aof: Aof, losses: Losses) -> Self {
        Self { server: RedisServer::options().aof(aof).start(), losses }
    }
}

impl Server for SingleRedis {
    fn addresses(&self) -> Vec<SocketAddr> {
        vec![loopback(self.server.port())]
    }

    fn url(&self, through: &[SocketAddr]) -> String {
        format!("redis://{}?timeout_ms={TIMEOUT_MS}{}", listed(through), self.losses.option())
    }

    fn crash(&self) -> Result<()> {
        self.server.kill();
        self.server.restart();
        Ok(())
    }

    fn pause(&self) {
        self.server.pause();
    }

    fn resume(&self) {
        self.server.resume();
    }
}

/// A primary, its replica and a sentinel, which promotes the replica when the primary is gone. A primary takes writes only
/// while it has a replica, as the guide advises.
pub(in crate::chaos) struct WatchedRedis {
    servers: [RedisServer; 2],
    sentinel: RedisServer,
    /// Which of the servers is stopped.
    paused: Mutex<Option<usize>>,
}

impl WatchedRedis {
    pub(in crate::chaos) fn start() -> Self {
        let options = || {
            let options = RedisServer::options().aof(Aof::Always);
            options.argument("--repl-diskless-sync-delay", "0").argument("--min-replicas-to-write", "1")
        };
        let first = options().start();
        let second = options().replica_of(&first).start();
        let sentinel = RedisServer::options().sentinel_of(NAME, &first).start();
        let watched = Self { servers: [first, second], sentinel, paused: Mutex::default() };
        watched.until_replica_copies();
        watched
    }

    /// The index of the primary, by the sentinel.
    fn primary(&self) -> usize {
        let address = self.sentinel.command(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME]);
        usize::from(!address.ends_with(&format!("\n{}", self.servers[0].port())))
    }

    /// The sentinel promotes only a replica that it has discovered. A former primary is made a replica here; the sentinel
    /// would do so some seconds later. A primary that was missing for a moment may answer again and still be replaced.
    fn until_replica_copies(&self) {
        until("the replica is connected, and the sentinel knows it", || {
            let known = self.sentinel.command(&["SENTINEL", "MASTER", NAME]);
            if !known.contains("\nflags\nmaster\n") {
                return false;
            }
            let primary = self.primary();
            let (port, replica) = (self.servers[primary].port().to_string(), &self.servers[1 - primary]);
            if !has_copied(replica) {
                let _ = replica.try_command(&["REPLICAOF", "127.0.0.1", &port]);
                return false;
            }
            let known = self.sentinel.try_command(&["SENTINEL", "REPLICAS", NAME]);
            known.is_ok_and(|known| known.contains("master-link-status\nok"))
        });
    }
}

impl Server for WatchedRedis {
    fn addresses(&self) -> Vec<SocketAddr> {
        vec![loopback(self.sentinel.port())]
    }

    fn url(&self, through: &[SocketAddr]) -> String {
        let losses = Losses::Accept.option();
        format!("redis+sentinel://{}/{NAME}?timeout_ms={TIMEOUT_MS}{losses}", listed(through))
    }

    fn crash(&self) -> Result<()> {
        self.until_replica_copies();
        let primary = self.primary();
        self.servers[primary].kill();
        until("the replica is the primary", || self.primary() != primary);
        self.servers[primary].restart();
        self.until_replica_copies();
        Ok(())
    }

    /// A long pause promotes the replica, too.
    fn pause(&self) {
        let primary = self.primary();
        self.servers[primary].pause();
        *self.paused.lock() = Some(primary);
    }

    fn resume(&self) {
        if let Some(paused) = self.paused.lock().take() {
            self.servers[paused].resume();
        }
    }

    fn recover(&self) {
        self.until_replica_copies();
    }
}

fn has_copied(replica: &RedisServer) -> bool {
    replica.try_command(&["INFO", "replication"]).is_ok_and(|info| info.contains("master_link_status:up"))
}
