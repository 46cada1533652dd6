//! One PostgreSQL server, with and without a pooler before it.

use std::net::SocketAddr;

use anyhow::Result;
use hapax_testkit::servers::{PgBouncer, PostgresServer};

use super::{Server, TIMEOUT_MS, listed, loopback};

/// One PostgreSQL server, which is started again on its own files and recovers from its log.
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

/// One PostgreSQL server behind a pooler that hands out a connection for a transaction only. Wake-ups go past it.
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

    fn crash(&self) {
        self.server.crash();
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
