//! [`RedisCluster`]: three primaries with a replica each.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{Aof, RedisOptions, RedisServer, ServerClock};

/// The slots of a cluster.
const SLOTS: u16 = 16384;

/// The primaries of a cluster; there are as many replicas.
const PRIMARIES: usize = 3;

/// Keys that are moved at a time.
const MOVED_AT_ONCE: usize = 50;

/// The node timeout.
const GIVES_UP_SOON: fn(RedisOptions) -> RedisOptions =
    |options| options.argument("--cluster-node-timeout", "1000");

/// How long nodes may take to agree.
const AGREE_WITHIN: Duration = Duration::from_secs(120);

/// The pause before a node is queried again.
const ASK_AGAIN: Duration = Duration::from_millis(10);

/// What the replica of a primary does when that has failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Replicas {
    /// It takes over.
    TakeOver,
    /// Nothing: the primary must come back.
    Watch,
}

/// A cluster on loopback, killed on drop.
#[derive(Debug)]
pub struct RedisCluster {
    /// The primaries first, as they were at the start, then the replica of each in the same order.
    servers: Vec<RedisServer>,
    clock: Option<(Arc<ServerClock>, TempDir)>,
    speaks_tls: bool,
}

impl RedisCluster {
    /// Starts a cluster with a node timeout of one second.
    ///
    /// # Panics
    /// As [`RedisOptions::start`].
    pub fn start() -> Self {
        Self::start_with(None, GIVES_UP_SOON)
    }

    /// The same, with nodes that serve TLS only, to clients and to each other. They announce `localhost`, the name in
    /// their certificate.
    ///
    /// # Panics
    /// As [`RedisOptions::start`].
    pub fn start_with_tls(certificate: &Path, key: &Path, ca: &Path) -> Self {
        let cluster = Self::start_with(None, |options| {
            GIVES_UP_SOON(options.tls(certificate, key, ca))
                .argument("--tls-cluster", "yes")
                .argument("--tls-replication", "yes")
                .argument("--cluster-announce-hostname", "localhost")
                .argument("--cluster-preferred-endpoint-type", "hostname")
        });
        Self { speaks_tls: true, ..cluster }
    }

    /// The same with nodes that sync every write before they answer.
    ///
    /// # Panics
    /// As [`RedisOptions::start`].
    pub fn start_durable(replicas: Replicas) -> Self {
        let keeps_still = match replicas {
            Replicas::TakeOver => "no",
            Replicas::Watch => "yes",
        };
        Self::start_with(None, |options| {
            GIVES_UP_SOON(options.aof(Aof::Always)).argument("--cluster-replica-no-failover", keeps_still)
        })
    }

    /// Starts a cluster whose time of day the test sets: [`advance`](Self::advance). Its nodes never time each other
    /// out, since their time jumps.
    ///
    /// # Panics
    /// As [`RedisOptions::start`].
    pub fn start_with_clock() -> Self {
        let dir = TempDir::new().expect("there is room for a temporary directory");
        let clock = Arc::new(ServerClock::new(dir.path()));
        Self::start_with(Some((clock, dir)), |options| {
            options
                .argument("--cluster-node-timeout", "9000000000000")
                .argument("--repl-timeout", "2000000000")
        })
    }

    fn start_with(
        clock: Option<(Arc<ServerClock>, TempDir)>,
        more: impl Fn(RedisOptions) -> RedisOptions + Sync,
    ) -> Self {
        let start = || {
            let options = RedisServer::options().member().argument("--repl-diskless-sync-delay", "0");
            let options = match &clock {
                Some((clock, _)) => options.clock_of(clock.clone()),
                None => options,
            };
            more(options).start()
        };
        let servers = thread::scope(|scope| {
            let starting: Vec<_> = (0..2 * PRIMARIES).map(|_| scope.spawn(start)).collect();
            starting.into_iter().map(|starting| starting.join().expect("a server starts")).collect()
        });
        let cluster = Self { servers, clock, speaks_tls: false };
        cluster.join();
        cluster
    }

    /// Joins the servers into one cluster.
    fn join(&self) {
        let each = usize::from(SLOTS).div_ceil(PRIMARIES);
        for (number, server) in self.servers.iter().enumerate() {
            server.command(&["CLUSTER", "SET-CONFIG-EPOCH", &(number + 1).to_string()]);
            if number < PRIMARIES {
                let (first, last) = (number * each, ((number + 1) * each).min(SLOTS.into()) - 1);
                server.command(&["CLUSTER", "ADDSLOTSRANGE", &first.to_string(), &last.to_string()]);
            }
            // Gossip would introduce them too, but later.
            let bus = server.command(&["CONFIG", "GET", "cluster-port"]);
            let bus = bus.lines().last().expect("a setting has a value");
            for other in &self.servers[..number] {
                other.command(&["CLUSTER", "MEET", "127.0.0.1", &server.port().to_string(), bus]);
            }
        }
        let all_known = format!("cluster_known_nodes:{}", self.servers.len());
        self.until(|server| server.command(&["CLUSTER", "INFO"]).contains(&all_known));
        for (primary, replica) in self.servers[..PRIMARIES].iter().zip(&self.servers[PRIMARIES..]) {
            let id = id(primary);
            // It must know the other node first.
            while replica.try_command(&["CLUSTER", "REPLICATE", &id]).is_err() {}
        }
        self.until(|server| {
            let is_up = server.command(&["CLUSTER", "INFO"]).contains("cluster_state:ok");
            let replicas = server.command(&["CLUSTER", "NODES"]).matches("slave").count();
            is_up && replicas == PRIMARIES
        });
        for replica in PRIMARIES..self.servers.len() {
            while !self.copies(replica) {}
        }
    }

    fn until(&self, is_done: impl Fn(&RedisServer) -> bool) {
        let began = Instant::now();
        for server in &self.servers {
            while !is_done(server) {
                if began.elapsed() > AGREE_WITHIN {
                    let tell = |words: &[&str]| server.try_command(words).unwrap_or_default();
                    panic!("{}\n{}", tell(&["CLUSTER", "INFO"]), tell(&["CLUSTER", "NODES"]));
                }
                // Nodes of a new cluster wait for two seconds before they report it as ready.
                self.advance(Duration::from_millis(100));
                thread::sleep(ASK_AGAIN);
            }
        }
    }

    /// Advances the time of all nodes, where the cluster was started with a clock.
    pub fn advance(&self, span: Duration) {
        if let Some((clock, _)) = &self.clock {
            clock.advance(span);
        }
    }

    /// The primaries as they were at the start.
    pub fn primaries(&self) -> &[RedisServer] {
        &self.servers[..PRIMARIES]
    }

    /// Their replicas as they were at the start, in the same order.
    pub fn replicas(&self) -> &[RedisServer] {
        &self.servers[PRIMARIES..]
    }

    /// The number of its shards, and of its primaries.
    pub fn shards(&self) -> usize {
        PRIMARIES
    }

    /// A node by its number: that of a shard for the server that was its primary at the start.
    ///
    /// # Panics
    /// When there is no such node.
    pub fn server(&self, number: usize) -> &RedisServer {
        &self.servers[number]
    }

    /// The number of the node that serves a shard now. Waits while there is none, or while two claim to.
    pub fn primary_of(&self, shard: usize) -> usize {
        loop {
            let serves = |number: &usize| !self.slots_of(*number).is_empty();
            let serving: Vec<usize> = [shard, shard + PRIMARIES].into_iter().filter(serves).collect();
            if let [primary] = serving[..] {
                return primary;
            }
            thread::sleep(ASK_AGAIN);
        }
    }

    /// The number of the other node of a node's shard.
    pub fn other_of(&self, number: usize) -> usize {
        (number + PRIMARIES) % self.servers.len()
    }

    /// The slots of a node that is a primary. None of one that does not answer.
    pub fn slots_of(&self, number: usize) -> Vec<u16> {
        let nodes = self.servers[number].try_command(&["CLUSTER", "NODES"]).unwrap_or_default();
        slots_in(nodes.lines().find(|line| line.contains("myself,master")).unwrap_or_default())
    }

    /// Whether a node knows all the slots of another one. A replica that takes over before it knows them takes over
    /// without them, and then no node serves them.
    pub fn knows_slots_of(&self, number: usize, owner: usize) -> bool {
        knows(&self.servers[number], &id(&self.servers[owner]), &self.slots_of(owner))
    }

    /// Whether a node is a replica that is connected to its primary.
    ///
    /// # Panics
    /// When it does not answer.
    pub fn copies(&self, number: usize) -> bool {
        self.servers[number].command(&["INFO", "replication"]).contains("master_link_status:up")
    }

    /// Waits until every shard has a primary and a replica, and all nodes know. A node that was missing for a moment
    /// may answer again and still be replaced, so no node may count as failing either.
    ///
    /// # Panics
    /// When that takes too long.
    pub fn settled(&self) {
        self.until(|server| {
            // A node in a full resynchronisation does not answer.
            let tell = |what| server.try_command(&["CLUSTER", what]).unwrap_or_default();
            let nodes = tell("NODES");
            tell("INFO").contains("cluster_state:ok") && !nodes.is_empty() && !nodes.contains(",fail")
        });
        for shard in 0..PRIMARIES {
            let began = Instant::now();
            // Roles may change meanwhile.
            while !self.copies(self.other_of(self.primary_of(shard))) {
                assert!(began.elapsed() < AGREE_WITHIN, "shard {shard} has no replica");
                thread::sleep(ASK_AGAIN);
            }
        }
    }

    /// The URL of the cluster, with `rediss+cluster` when it serves TLS. It names two nodes; the first is a replica.
    pub fn url(&self) -> String {
        let (first, second) = (self.servers[PRIMARIES].port(), self.servers[0].port());
        if self.speaks_tls {
            format!("rediss+cluster://localhost:{first},localhost:{second}")
        } else {
            format!("redis+cluster://127.0.0.1:{first},127.0.0.1:{second}")
        }
    }

    /// Which of [`primaries`](Self::primaries) has `key`, as long as no slots were moved and no replica was promoted.
    pub fn owner_of(&self, key: &str) -> &RedisServer {
        let each = usize::from(SLOTS).div_ceil(PRIMARIES);
        &self.servers[usize::from(self.slot_of(key)) / each]
    }

    /// The slot of `key`, by the first node.
    ///
    /// # Panics
    /// When it does not answer.
    pub fn slot_of(&self, key: &str) -> u16 {
        self.servers[0].command(&["CLUSTER", "KEYSLOT", key]).parse().expect("a slot is a number")
    }

    /// Moves a slot with its keys from one primary to another one, by their numbers.
    ///
    /// # Panics
    /// When a node does not answer or refuses.
    pub fn move_slot(&self, slot: u16, from: usize, to: usize) {
        self.begin_move(slot, from, to);
        while self.move_keys(slot, from, to, MOVED_AT_ONCE) {}
        self.end_move(slot, from, to);
    }

    /// Moves many slots with their keys from one primary to another one, by their numbers. All of them are migrating
    /// before the first key is moved, and when this returns all nodes know where they are.
    ///
    /// # Panics
    /// When a node does not answer or refuses.
    pub fn move_slots(&self, slots: &[u16], from: usize, to: usize) {
        let set = |server: usize, words: &str| {
            let lines: Vec<String> =
                slots.iter().map(|slot| format!("CLUSTER SETSLOT {slot} {words}")).collect();
            let told = self.servers[server].commands(&lines);
            let refused = told.iter().find(|line| *line != "OK");
            assert!(refused.is_none() && told.len() == slots.len(), "{words}: {refused:?}");
        };
        set(to, &format!("IMPORTING {}", id(&self.servers[from])));
        set(from, &format!("MIGRATING {}", id(&self.servers[to])));
        let look: Vec<String> =
            slots.iter().map(|slot| format!("CLUSTER GETKEYSINSLOT {slot} {MOVED_AT_ONCE}")).collect();
        let port = self.servers[to].port();
        loop {
            let keys = self.servers[from].commands(&look);
            let keys = keys.iter().filter(|key| !key.is_empty());
            let moves: Vec<String> =
                keys.map(|key| format!("MIGRATE 127.0.0.1 {port} {key} 0 60000")).collect();
            if moves.is_empty() {
                break;
            }
            let told = self.servers[from].commands(&moves);
            let refused = told.iter().find(|line| !matches!(line.as_str(), "OK" | "NOKEY"));
            assert!(refused.is_none() && told.len() == moves.len(), "{refused:?}");
        }
        let owner = id(&self.servers[to]);
        self.tell_first(from, to).for_each(|server| set(server, &format!("NODE {owner}")));
        self.until(|server| knows(server, &owner, slots));
    }

    /// The current primaries, in the order in which they are notified that slots have moved.
    fn tell_first(&self, from: usize, to: usize) -> impl Iterator<Item = usize> {
        let primaries = (0..PRIMARIES).map(|shard| self.primary_of(shard));
        let others = primaries.filter(move |number| *number != from && *number != to);
        [to, from].into_iter().chain(others)
    }

    /// Marks a slot as migrating on two primaries; no key moves yet.
    ///
    /// # Panics
    /// When a node does not answer or refuses.
    pub fn begin_move(&self, slot: u16, from: usize, to: usize) {
        let (slot, [from, to]) = (slot.to_string(), [&self.servers[from], &self.servers[to]]);
        to.command(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &id(from)]);
        from.command(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &id(to)]);
    }

    /// Moves some keys of a migrating slot. Returns whether there were any.
    ///
    /// # Panics
    /// When a node does not answer or refuses.
    pub fn move_keys(&self, slot: u16, from: usize, to: usize, count: usize) -> bool {
        let keys =
            self.servers[from].command(&["CLUSTER", "GETKEYSINSLOT", &slot.to_string(), &count.to_string()]);
        let keys: Vec<&str> = keys.lines().filter(|key| !key.is_empty()).collect();
        if !keys.is_empty() {
            let port = self.servers[to].port().to_string();
            let migrate = ["MIGRATE", "127.0.0.1", &port, "", "0", "60000", "KEYS"];
            self.servers[from].command(&[&migrate[..], &keys].concat());
        }
        !keys.is_empty()
    }

    /// Notifies all current primaries that a slot has moved; its new owner first.
    ///
    /// # Panics
    /// When a node does not answer or refuses.
    pub fn end_move(&self, slot: u16, from: usize, to: usize) {
        let (slot, owner) = (slot.to_string(), id(&self.servers[to]));
        for server in self.tell_first(from, to) {
            self.servers[server].command(&["CLUSTER", "SETSLOT", &slot, "NODE", &owner]);
        }
    }

    /// Waits until the replica of a primary has replicated everything.
    ///
    /// # Panics
    /// When one of them does not answer.
    pub fn copied(&self, primary: usize) {
        let offset = |server: &RedisServer, name: &str| {
            let info = server.command(&["INFO", "replication"]);
            let line = info.lines().find_map(|line| line.strip_prefix(name).map(str::to_owned));
            line.expect("a server tells how far it is")
        };
        let (primary, replica) = (&self.servers[primary], &self.servers[PRIMARIES + primary]);
        while offset(primary, "master_repl_offset:") != offset(replica, "slave_repl_offset:") {}
    }
}

/// Whether a node that answers knows that another one has these slots.
fn knows(server: &RedisServer, owner: &str, slots: &[u16]) -> bool {
    let nodes = server.try_command(&["CLUSTER", "NODES"]).unwrap_or_default();
    let owned = slots_in(nodes.lines().find(|line| line.starts_with(owner)).unwrap_or_default());
    slots.iter().all(|slot| owned.contains(slot))
}

/// The slots of a node, in its line.
fn slots_in(line: &str) -> Vec<u16> {
    // Migrating slots are in brackets at the end.
    let ranges = line.split(' ').skip(8).take_while(|range| !range.starts_with('['));
    let slots = ranges.filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse::<u16>().ok()?..=last.parse().ok()?)
    });
    slots.flatten().collect()
}

fn id(server: &RedisServer) -> String {
    server.command(&["CLUSTER", "MYID"])
}
