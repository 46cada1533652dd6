//! A Redis cluster: three primaries with a replica each, whose slots move between them.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use hapax_testkit::servers::{RedisCluster, Replicas};
use parking_lot::Mutex;

use super::{Losses, Server, TIMEOUT_MS, listed, loopback, until};

/// Slots that move at a time: so many that some requests are for a migrating one.
const SLOTS_MOVED: usize = 256;
/// How long a primary is without its replica before it is killed: long enough for some writes that are not replicated.
const UNREPLICATED_FOR: Duration = Duration::from_millis(100);

/// A cluster whose primaries are killed in turn.
pub(in crate::chaos) struct ClusterRedis {
    cluster: RedisCluster,
    replicas: Replicas,
    turn: AtomicUsize,
    /// Which of the servers is stopped.
    paused: Mutex<Option<usize>>,
}

impl ClusterRedis {
    pub(in crate::chaos) fn start(replicas: Replicas) -> Self {
        let cluster = RedisCluster::start_durable(replicas);
        Self { cluster, replicas, turn: AtomicUsize::new(0), paused: Mutex::default() }
    }

    /// The primary whose turn it is.
    fn next(&self) -> usize {
        let shard = self.turn.fetch_add(1, Ordering::Relaxed) % self.cluster.shards();
        self.cluster.primary_of(shard)
    }
}

impl Server for ClusterRedis {
    fn addresses(&self) -> Vec<SocketAddr> {
        (0..self.cluster.shards()).map(|shard| loopback(self.cluster.server(shard).port())).collect()
    }

    fn url(&self, through: &[SocketAddr]) -> String {
        let losses = match self.replicas {
            Replicas::TakeOver => Losses::Accept,
            Replicas::Watch => Losses::Stop,
        };
        format!("redis+cluster://{}?timeout_ms={TIMEOUT_MS}{}", listed(through), losses.option())
    }

    /// Where replicas take over, the primary loses its replica a moment before it is killed, as when a network fails first.
    fn crash(&self) -> Result<()> {
        let primary = self.next();
        if self.replicas == Replicas::TakeOver {
            let successor = self.cluster.other_of(primary);
            until("the replica knows its primary's slots", || {
                self.cluster.copies(successor) && self.cluster.knows_slots_of(successor, primary)
            });
            // A stopped replica cannot reconnect, and a closed connection has no buffered writes for it.
            self.cluster.server(successor).pause();
            self.cluster.server(primary).command(&["CLIENT", "KILL", "TYPE", "replica"]);
            thread::sleep(UNREPLICATED_FOR);
            self.cluster.server(primary).kill();
            self.cluster.server(successor).resume();
            until("the replica is the primary", || !self.cluster.slots_of(successor).is_empty());
        } else {
            self.cluster.server(primary).kill();
        }
        self.cluster.server(primary).restart();
        self.cluster.settled();
        Ok(())
    }

    fn move_slots(&self, choice: u64) -> Result<()> {
        self.cluster.settled();
        let (from, to) = (self.next(), self.next());
        let slots = self.cluster.slots_of(from);
        let first = choice as usize % slots.len();
        let moved: Vec<u16> =
            slots.iter().cycle().skip(first).take(SLOTS_MOVED.min(slots.len() / 2)).copied().collect();
        self.cluster.move_slots(&moved, from, to);
        Ok(())
    }

    /// After a long pause a replica takes over, where replicas may.
    fn pause(&self) {
        let primary = self.next();
        self.cluster.server(primary).pause();
        *self.paused.lock() = Some(primary);
    }

    fn resume(&self) {
        if let Some(paused) = self.paused.lock().take() {
            self.cluster.server(paused).resume();
        }
    }

    fn recover(&self) {
        self.cluster.settled();
    }
}
