//! One PostgreSQL server.

use std::net::SocketAddr;

use hapax_testkit::servers::PostgresServer;

use super::{Server, TIMEOUT_MS, loopback};

/// One PostgreSQL server, which is started again on its own files and recovers from its log.
pub(in crate::chaos) struct SinglePostgres(PostgresServer);

impl SinglePostgres {
    pub(in crate::chaos) fn start() -> Self {
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
