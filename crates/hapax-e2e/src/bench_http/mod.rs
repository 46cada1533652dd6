//! The layer against the bare service: one server thread on one core, 64 connections from the other.
//!
//! All services run from the start, and all are driven in turn in every round, so that a machine that slows down slows
//! them all. The stores' threads are not pinned, as in an application.

mod compare;
pub mod count;
pub(crate) mod driver;
mod server;
pub(crate) mod threads;

use std::path::Path;
use std::time::Duration;

use axum::Router;
use hapax::http::IdempotencyLayer;
use hapax::{Builder, Hapax, MemoryStore, Policy};
use hapax_store_file::FileStore;
use hapax_store_redis::RedisStore;

pub use self::compare::{Beside, compare};
pub use self::driver::{Key, Load};
pub use self::server::Server;
pub use self::threads::pin;

/// The core of the server thread.
pub const SERVER_CORE: usize = 0;
/// The core of everything else.
pub const OTHER_CORE: usize = 1;

/// The records of a round expire before the next one, as in a service that has run for a day.
pub const RETENTION: Duration = Duration::from_millis(1);

/// One kind of service under one kind of load.
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// The keys that are sent.
    pub key: Key,
    server: Server,
    hapax: Option<Hapax>,
}

/// The figures of one round of a scenario.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    /// Requests a second.
    pub rate: f64,
    /// CPU time of all threads but the driver, in microseconds for each request.
    pub cpu_micros: f64,
    /// The part of the server thread.
    pub server_micros: f64,
    /// The fraction of the time for which the server thread ran.
    pub server_busy: f64,
    requests: f64,
}

impl Scenario {
    /// A service without the layer.
    pub fn bare() -> Self {
        Self { name: "bare axum", key: Key::Fresh, server: Server::start(async |app| app), hapax: None }
    }

    /// A service with the layer on `hapax`.
    pub fn layered(name: &'static str, key: Key, hapax: Hapax) -> Self {
        let layer = IdempotencyLayer::new(&hapax).for_axum();
        Self { name, key, server: Server::start(async |app| app.layer(layer)), hapax: Some(hapax) }
    }

    /// The same with the layer's own body type, which axum has to box.
    pub fn layered_plainly(name: &'static str, key: Key, hapax: Hapax) -> Self {
        let layer = IdempotencyLayer::new(&hapax);
        Self { name, key, server: Server::start(async |app| app.layer(layer)), hapax: Some(hapax) }
    }

    /// A service with the layer on a Redis server, to which the service's own runtime has the connection. `setting` chooses the
    /// rest.
    ///
    /// # Panics
    /// When the server cannot be used as a store.
    pub fn on_redis(
        name: &'static str,
        key: Key,
        url: String,
        setting: impl FnOnce(Builder) -> Builder + Send + 'static,
    ) -> Self {
        let wrap = async move |app: Router| {
            let store = RedisStore::connect(&url).await.expect("the server can be used as a store");
            let hapax = setting(Hapax::builder(store).sweep(None)).build();
            app.layer(IdempotencyLayer::new(&hapax).for_axum())
        };
        Self { name, key, server: Server::start(wrap), hapax: None }
    }

    /// Drives the service for `span`, and sweeps the records afterwards.
    pub fn round(&self, span: Duration) -> Round {
        let round = self.drive(&self.warm_load(span));
        self.sweep();
        round
    }

    /// Allocations of all threads but the driver, for each request, in a separate round.
    pub fn allocations(&self, span: Duration) -> f64 {
        let load = self.warm_load(span);
        let (round, allocations) = count::allocations(|| self.drive(&load));
        self.sweep();
        allocations as f64 / round.requests
    }

    fn warm_load(&self, span: Duration) -> Load {
        let load = Load { to: self.server.address, path: driver::ORDERS, key: self.key, span };
        driver::warm_up(&load).expect("the service answers");
        load
    }

    fn drive(&self, load: &Load) -> Round {
        // The driver's thread begins and ends in between, so it is in neither sum.
        let before = (threads::cpu(), self.server.cpu());
        let driven = driver::drive(load).expect("the service answers");
        let after = (threads::cpu(), self.server.cpu());
        let requests = driven.requests as f64;
        let server = after.1.saturating_sub(before.1).as_secs_f64();
        Round {
            rate: requests / driven.took.as_secs_f64(),
            cpu_micros: after.0.saturating_sub(before.0).as_secs_f64() * 1e6 / requests,
            server_micros: server * 1e6 / requests,
            server_busy: server / driven.took.as_secs_f64(),
            requests,
        }
    }

    fn sweep(&self) {
        if let Some(hapax) = &self.hapax {
            self.server.sweep(hapax.clone());
        }
    }
}

/// Hapax on a memory store, for fresh keys.
pub fn memory_fresh() -> Hapax {
    let builder = Hapax::builder(MemoryStore::new());
    builder.policy(Policy::default().retention(RETENTION)).sweep(None).build()
}

/// Hapax on a memory store, for replays.
pub fn memory_replay() -> Hapax {
    Hapax::builder(MemoryStore::new()).sweep(None).build()
}

/// Hapax on a durable file store in `folder`, with default options.
///
/// # Panics
/// When no store can be made there.
pub fn file(folder: &Path) -> Hapax {
    on_file(folder).build()
}

/// The same without a cache of finished records.
///
/// # Panics
/// When no store can be made there.
pub fn file_uncached(folder: &Path) -> Hapax {
    on_file(folder).cache(0).build()
}

fn on_file(folder: &Path) -> Builder {
    let store = FileStore::open(folder).expect("a store opens in an empty folder");
    Hapax::builder(store).sweep(None)
}
