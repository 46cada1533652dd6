//! One PostgreSQL server, with and without a pooler before it, and one with a standby.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use hapax_testkit::servers::{PgBouncer, PostgresServer};

use super::{Server, TIMEOUT_MS, listed, loopback, until};

/// One PostgreSQL server, which is restarted on its own files and recovers from its write-ahead log.
pub(in crate::chaos) struct SinglePostgres(PostgresServer);

impl SinglePostgres {
    pub(in crate::chaos) fn start() -> Self {
        Self(PostgresServer::options().durable().start())
    }
}

impl Server for SinglePostgres {
    fn addresses(&self) -> Vec<SocketAddr> {
        vec![loopback(self.0.port())]
    }

    fn url(&self, through: &[SocketAddr]) -> String {
        format!("postgres://postgres@{}/postgres?timeout_ms={TIMEOUT_MS}", listed(through))
    }

    fn crash(&self) -> Result<()> {
        self.0.kill();
        self.0.restart();
        Ok(())
    }

    fn pause(&self) {
        self.0.pause();
    }

    fn resume(&self) {
        self.0.resume();
    }
}

/// One PostgreSQL server behind a pooler in transaction mode. Notifications bypass the pooler.
pub(in crate::chaos) struct PooledPostgres {
    pooler: PgBouncer,
    server: SinglePostgres,
}

impl PooledPostgres {
    pub(in crate::chaos) fn start() -> Self {
        let server = SinglePostgres::start();
        Self { pooler: PgBouncer::start(&server.0), server }
    }
}

impl Server for PooledPostgres {
    fn addresses(&self) -> Vec<SocketAddr> {
        vec![loopback(self.pooler.port())]
    }

    fn url(&self, through: &[SocketAddr]) -> String {
        format!("{}&listen={}", self.server.url(through), listed(&self.server.addresses()))
    }

    fn crash(&self) -> Result<()> {
        self.server.crash()
    }

    fn crash_pooler(&self) -> Result<()> {
        self.pooler.kill();
        self.pooler.restart();
        Ok(())
    }

    fn pause(&self) {
        self.server.pause();
    }

    fn resume(&self) {
        self.server.resume();
    }
}

/// A primary whose commits wait for its standby. When it is killed, the standby is promoted, and the former primary becomes
/// its standby. Sidecars know both addresses and connect to the one that takes writes.
pub(in crate::chaos) struct PostgresPair {
    servers: [PostgresServer; 2],
    primary: AtomicUsize,
}

impl PostgresPair {
    pub(in crate::chaos) fn start() -> Self {
        // The default name of a standby. The log that it needs to start must not be removed before.
        let options = PostgresServer::options()
            .durable()
            .setting("synchronous_standby_names", "walreceiver")
            .setting("wal_keep_size", "256MB");
        let first = options.clone().start();
        let second = options.standby_of(&first).start();
        let pair = Self { servers: [first, second], primary: AtomicUsize::new(0) };
        pair.until_synchronous();
        pair
    }

    fn primary(&self) -> &PostgresServer {
        &self.servers[self.primary.load(Ordering::Relaxed)]
    }

    fn until_synchronous(&self) {
        until("commits wait for the standby", || self.primary().has_synchronous_standby());
    }
}

impl Server for PostgresPair {
    fn addresses(&self) -> Vec<SocketAddr> {
        self.servers.iter().map(|server| loopback(server.port())).collect()
    }

    fn url(&self, through: &[SocketAddr]) -> String {
        format!(
            "postgres://postgres@{}/postgres?timeout_ms={TIMEOUT_MS}&target_session_attrs=read-write",
            listed(through)
        )
    }

    fn crash(&self) -> Result<()> {
        self.until_synchronous();
        let killed = self.primary.fetch_xor(1, Ordering::Relaxed);
        self.servers[killed].kill();
        self.primary().promote();
        self.servers[killed].follow(self.primary());
        self.until_synchronous();
        Ok(())
    }

    fn pause(&self) {
        self.primary().pause();
    }

    fn resume(&self) {
        self.primary().resume();
    }
}
