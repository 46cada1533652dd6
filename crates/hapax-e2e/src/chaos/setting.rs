//! [`Setting`]: the stores under test and how they are set up: how many sidecars share them, and what they promise.
//!
//! A further store is one more [`Setting`] and, where it has servers, one more [`Server`].

use std::sync::Arc;

use clap::ValueEnum;
use hapax_core::Promise;
use hapax_testkit::servers::{Aof, Replicas};

use super::server::{
    ClusterRedis, LocalDynamoDb, Losses, PooledPostgres, PostgresPair, Server, SinglePostgres, SingleRedis,
    WatchedRedis,
};

/// A store and how it is set up: a row of the promise table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Setting {
    /// The file store, which belongs to one sidecar.
    File,
    /// One Redis server that syncs every write before it answers.
    Redis,
    /// One Redis server that syncs once a second.
    RedisEverysec,
    /// A Redis primary that takes writes only while it has a replica, watched by Sentinel.
    RedisSentinel,
    /// A Redis cluster whose primaries come back by themselves.
    RedisCluster,
    /// A Redis cluster whose replicas take over.
    RedisClusterFailover,
    /// One PostgreSQL server that syncs every commit before it answers.
    Postgres,
    /// The same behind pgbouncer in transaction mode.
    PostgresPooled,
    /// A PostgreSQL server with a synchronous standby, which is promoted.
    PostgresStandby,
    /// DynamoDB Local, in memory.
    #[value(name = "dynamodb")]
    DynamoDb,
}

impl Setting {
    /// Its name in goals and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Redis => "redis",
            Self::RedisEverysec => "redis-everysec",
            Self::RedisSentinel => "redis-sentinel",
            Self::RedisCluster => "redis-cluster",
            Self::RedisClusterFailover => "redis-cluster-failover",
            Self::Postgres => "postgres",
            Self::PostgresPooled => "postgres-pooled",
            Self::PostgresStandby => "postgres-standby",
            Self::DynamoDb => "dynamodb",
        }
    }

    /// A description, with its promise under the faults of this proof.
    pub fn about(self) -> &'static str {
        match self {
            Self::File => "file store, one sidecar: at most once, outcomes survive every crash",
            Self::Redis => {
                "Redis, appendfsync always, noeviction: at most once, outcomes survive a crash of the server"
            }
            Self::RedisEverysec => {
                "Redis, appendfsync everysec, losses accepted: best effort, a crash may take the last two seconds with it"
            }
            Self::RedisSentinel => {
                "Redis behind Sentinel, min-replicas-to-write 1, losses accepted: best effort, a failover may take acknowledged claims and outcomes with it"
            }
            Self::RedisCluster => {
                "Redis cluster of 3 and 3, appendfsync always, no failover: at most once, outcomes survive crashes and moves of slots"
            }
            Self::RedisClusterFailover => {
                "Redis cluster of 3 and 3, failovers, losses accepted: best effort, a failover takes with it what was not copied"
            }
            Self::Postgres => {
                "PostgreSQL, fsync and synchronous_commit on: at most once, outcomes survive a crash of the server"
            }
            Self::PostgresPooled => {
                "PostgreSQL behind pgbouncer in transaction mode: as without it, and outcomes survive a crash of the pooler"
            }
            Self::PostgresStandby => {
                "PostgreSQL with a synchronous standby: at most once, outcomes survive the promotion of the standby"
            }
            Self::DynamoDb => {
                "DynamoDB Local: at most once, when sidecars crash and networks fail; nothing is said about the service"
            }
        }
    }

    /// The name of its server's crashes.
    pub(super) fn crash(self) -> &'static str {
        match self {
            Self::RedisSentinel | Self::RedisClusterFailover => "failovers",
            Self::PostgresStandby => "promotions of the standby",
            _ => "crashes of the server",
        }
    }

    /// Its promise. Doubles and lost answers are faults only where it is at most once.
    pub fn promise(self) -> Promise {
        match self {
            // A cluster promises less during failovers.
            Self::RedisEverysec | Self::RedisSentinel | Self::RedisClusterFailover => Promise::BestEffort,
            _ => Promise::AtMostOnce,
        }
    }

    /// How many sidecars share it.
    pub(super) fn sidecars(self) -> usize {
        match self {
            Self::File => 1,
            _ => 3,
        }
    }

    /// Whether sidecars reach it through a [`FaultProxy`](crate::fault_proxy::FaultProxy).
    pub(super) fn has_link(self) -> bool {
        match self {
            // There is no network, or the servers announce their own addresses.
            Self::File | Self::RedisSentinel | Self::RedisCluster | Self::RedisClusterFailover => false,
            _ => true,
        }
    }

    /// Whether it has a server.
    pub(super) fn has_server(self) -> bool {
        self != Self::File
    }

    /// Whether that server keeps its records in a crash.
    pub(super) fn can_crash(self) -> bool {
        self.has_server() && self != Self::DynamoDb
    }

    /// Whether sidecars reach that server through a pooler, which can crash separately.
    pub(super) fn has_pooler(self) -> bool {
        self == Self::PostgresPooled
    }

    /// Whether records move from one of its servers to another.
    pub(super) fn has_slots(self) -> bool {
        matches!(self, Self::RedisCluster | Self::RedisClusterFailover)
    }

    /// Starts its server. None where it has none.
    pub(super) fn start(self) -> Option<Arc<dyn Server>> {
        match self {
            Self::File => None,
            Self::Redis => Some(Arc::new(SingleRedis::start(Aof::Always, Losses::Stop))),
            Self::RedisEverysec => Some(Arc::new(SingleRedis::start(Aof::EverySecond, Losses::Accept))),
            Self::RedisSentinel => Some(Arc::new(WatchedRedis::start())),
            Self::RedisCluster => Some(Arc::new(ClusterRedis::start(Replicas::Watch))),
            Self::RedisClusterFailover => Some(Arc::new(ClusterRedis::start(Replicas::TakeOver))),
            Self::Postgres => Some(Arc::new(SinglePostgres::start())),
            Self::PostgresPooled => Some(Arc::new(PooledPostgres::start())),
            Self::PostgresStandby => Some(Arc::new(PostgresPair::start())),
            Self::DynamoDb => Some(Arc::new(LocalDynamoDb::start())),
        }
    }
}
