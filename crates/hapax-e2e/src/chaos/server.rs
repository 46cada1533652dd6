//! The servers of the stores under test: how they crash, pause and come back.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use hapax_testkit::servers::{Aof, PostgresServer, RedisServer};
use parking_lot::Mutex;

/// How long one call of a store may take. Short, so that a lease covers several.
const TIMEOUT_MS: u64 = 300;
/// What the sentinel calls the primary.
const NAME: &str = "shop";
/// A failover that has not come about by then never will.
const FAILOVER_MAX: Duration = Duration::from_secs(60);
/// How long to wait before a server is asked again how far it is.
const ASK_AGAIN: Duration = Duration::from_millis(20);

/// A server whose records several sidecars share. Its calls block, and panic where the machine lacks the server.
pub(super) trait Server: Send + Sync {
    /// Where it listens.
    fn address(&self) -> SocketAddr;

    /// The URL of the store for a sidecar that reaches the server at `through`.
    fn url(&self, through: SocketAddr) -> String;

    /// Kills it with SIGKILL and brings the store back, in whatever way this one comes back.
    fn crash(&self);

    /// Stops it with SIGSTOP; its connections stay open.
    fn pause(&self);

    /// Lets it go on.
    fn resume(&self);
}

/// One Redis server, which is started again on its own files.
pub(super) struct SingleRedis {
    server: RedisServer,
    losses: Losses,
}

/// What sidecars do when the server has lost records.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Losses {
    /// They stop. Where losses are ruled out, one is a fault.
    Stop,
    /// They go on, as their operator would have to say. What that costs is what is measured.
    Accept,
}

impl Losses {
    fn option(self) -> &'static str {
        match self {
            Self::Stop => "",
            Self::Accept => "&amnesia=accept",
        }
    }
}

impl SingleRedis {
    pub(super) fn start(aof: Aof, losses: Losses) -> Self {
        Self { server: RedisServer::options().aof(aof).start(), losses }
    }
}

impl Server for SingleRedis {
    fn address(&self) -> SocketAddr {
        loopback(self.server.port())
    }

    fn url(&self, through: SocketAddr) -> String {
        format!("redis://{through}?timeout_ms={TIMEOUT_MS}{}", self.losses.option())
    }

    fn crash(&self) {
        self.server.kill();
        self.server.restart();
    }

    fn pause(&self) {
        self.server.pause();
    }

    fn resume(&self) {
        self.server.resume();
    }
}

/// Two servers, of which one copies the other, and a sentinel: when the primary is gone, the replica is the next one.
pub(super) struct WatchedRedis {
    servers: [RedisServer; 2],
    sentinel: RedisServer,
    /// Which of the servers is stopped.
    paused: Mutex<Option<usize>>,
}

impl WatchedRedis {
    pub(super) fn start() -> Self {
        let options = || RedisServer::options().aof(Aof::Always).argument("--repl-diskless-sync-delay", "0");
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
    /// is told at once that it is not; the sentinel would say so some seconds later.
    fn until_replica_copies(&self) {
        until("the replica copies the primary, and the sentinel knows", || {
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
    fn address(&self) -> SocketAddr {
        loopback(self.sentinel.port())
    }

    fn url(&self, through: SocketAddr) -> String {
        let losses = Losses::Accept.option();
        format!("redis+sentinel://{through}/{NAME}?timeout_ms={TIMEOUT_MS}{losses}")
    }

    fn crash(&self) {
        self.until_replica_copies();
        let primary = self.primary();
        self.servers[primary].kill();
        until("the replica is the primary", || self.primary() != primary);
        self.servers[primary].restart();
        self.until_replica_copies();
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
}

/// One PostgreSQL server, which is started again on its own files and recovers from its log.
pub(super) struct SinglePostgres(PostgresServer);

impl SinglePostgres {
    pub(super) fn start() -> Self {
        Self(PostgresServer::options().durable().start())
    }
}

impl Server for SinglePostgres {
    fn address(&self) -> SocketAddr {
        loopback(self.0.port())
    }

    fn url(&self, through: SocketAddr) -> String {
        format!("postgres://postgres@{through}/postgres?timeout_ms={TIMEOUT_MS}")
    }

    fn crash(&self) {
        self.0.kill();
        self.0.restart();
    }

    fn pause(&self) {
        self.0.pause();
    }

    fn resume(&self) {
        self.0.resume();
    }
}

fn loopback(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

fn has_copied(replica: &RedisServer) -> bool {
    replica.try_command(&["INFO", "replication"]).is_ok_and(|told| told.contains("master_link_status:up"))
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < FAILOVER_MAX, "waited in vain until {what}");
        std::thread::sleep(ASK_AGAIN);
    }
}
