//! The cost of the layer on the store: the services of `bench_http`, with Redis on the core of the load.
//!
//! The load and Redis share a core, and where that one is busier than the service's, it limits the rate. So the CPU time
//! for a request is compared: of all threads of the process but the one that sends the load.

use std::time::Duration;

use hapax::Policy;
use hapax_testkit::servers::RedisServer;

use crate::bench_http::{Beside, Key, OTHER_CORE, RETENTION, Scenario, compare, pin};

/// A Redis server and services that use it. The first one is bare.
pub struct Layer {
    /// The services.
    pub scenarios: [Scenario; 4],
    // Dropped last, because the services use it.
    _server: RedisServer,
}

impl Layer {
    /// Starts the server and the services.
    ///
    /// # Panics
    /// When they cannot be started.
    pub fn start() -> Self {
        pin(OTHER_CORE);
        let server = RedisServer::start();
        let url = |part: &str| format!("{}?prefix={part}:", server.url());
        let scenarios = [
            Scenario::bare(),
            Scenario::on_redis("redis, fresh keys", Key::Fresh, url("fresh"), |hapax| {
                hapax.policy(Policy::default().retention(RETENTION))
            }),
            // The cache of finished records would replay them without a call to the store.
            Scenario::on_redis("redis, replays, no cache", Key::Known, url("replay"), |hapax| hapax.cache(0)),
            Scenario::on_redis("redis, replays, cache", Key::Known, url("cached"), |hapax| hapax),
        ];
        Self { scenarios, _server: server }
    }

    /// Drives all of them in turn and prints the table. Returns the figures of fresh keys and of replays by the store.
    pub fn compare(&self, rounds: usize, span: Duration) -> [Beside; 2] {
        let beside = compare(&self.scenarios, rounds, span);
        [beside[1], beside[2]]
    }
}
