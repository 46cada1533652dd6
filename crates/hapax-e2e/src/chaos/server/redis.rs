//! One Redis server, and two that Sentinel watches.

use std::net::SocketAddr;

use anyhow::Result;
use hapax_testkit::servers::{Aof, RedisServer};
use parking_lot::Mutex;

use super::{Server, TIMEOUT_MS, listed, loopback, until};

/// What the sentinel calls the primary.
const NAME: &str = "shop";

/// One Redis server, which is started again on its own files.
pub(in crate::chaos) struct SingleRedis {
    server: RedisServer,
    losses: Losses,
}

/// What sidecars do when the server has lost records.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::chaos) enum Losses {
    /// They stop. Where losses are ruled out, one is a fault.
    Stop,
    /// They go on, as their operator would have to say. What that costs is what is measured.
    Accept,
}

impl Losses {
    /// The same as an option of the URL.
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

/// Two servers, of which one copies the other, and a sentinel: when the primary is gone, the replica is the next one. A
/// primary takes writes only while somebody copies them, as the guide advises.
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

    /// Which of the servers is the primary, in the eyes of the sentinel.
    fn primary(&self) -> usize {
        let place = self.sentinel.command(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME]);
        usize::from(!place.ends_with(&format!("\n{}", self.servers[0].port())))
    }

    /// Only a replica that has told the sentinel about itself is one that it would promote. One that was the primary
    /// is told at once that it is not; the sentinel would say so some seconds later. A primary that was missed for a
    /// moment may answer again and still be replaced.
    fn until_replica_copies(&self) {
        until("the replica copies the primary, and the sentinel knows", || {
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

    /// Long pauses make the replica the primary, too.
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
    replica.try_command(&["INFO", "replication"]).is_ok_and(|told| told.contains("master_link_status:up"))
}
