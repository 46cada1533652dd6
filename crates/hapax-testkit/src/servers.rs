//! Real servers for the tests of stores: started in a directory of their own, on loopback, ended when dropped.
//!
//! A server that is not installed is a failure, and its message has the line that installs it. Nothing is skipped.

mod certificate;
mod clock;
mod dynamodb;
mod pgbouncer;
mod postgres;
mod process;
mod redis;
mod redis_cluster;
mod start;

pub use certificate::certificate;
pub use clock::ServerClock;
pub use dynamodb::DynamoDbServer;
pub use pgbouncer::PgBouncer;
pub use postgres::{PostgresOptions, PostgresServer};
pub use redis::{Aof, RedisOptions, RedisServer};
pub use redis_cluster::{RedisCluster, Replicas};
