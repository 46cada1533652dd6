//! Real servers for the tests of stores: started in their own directory, on loopback, and killed on drop.
//!
//! A server that is not installed is a failure whose message has the command that installs it. Nothing is skipped.

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
