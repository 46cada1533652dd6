//! The Redis store of Hapax: many machines, one record per key, one fenced script per change.
//!
//! | server | owner or executor crashes or pauses | server killed, same disk | power loss | failover | promise |
//! |---|---|---|---|---|---|
//! | no append-only file | at most once holds while the server runs | claims are lost | claims are lost | — | best effort |
//! | `appendfsync everysec` | holds | up to two seconds lost if the disk is slow | one or two seconds lost | — | best effort |
//! | `appendfsync always`, `noeviction`, no replicas | holds | durable | durable if the disk honours fsync | none | at most once |
//! | with replicas, or a cluster | holds between failovers | as above | as above | acknowledged claims can be lost | best effort |
//!
//! A lost claim lets its operation run again. [`health`](hapax_core::Store::health) reports which row is in force, read
//! from the server's settings.
//!
//! # Set-up
//!
//! ```no_run
//! # async fn connect() -> Result<(), hapax_core::StoreError> {
//! let store = hapax_store_redis::RedisStore::connect("redis://127.0.0.1:6379/0?prefix=shop:").await?;
//! # Ok(())
//! # }
//! ```
//!
//! Redis 7 or newer is recommended; 6.2 works and needs a script for every claim. `rediss://` is TLS, `redis+sentinel://`
//! locates the primary through Sentinel, and `redis+cluster://` is a cluster. See [`Options`] for the rest.
//!
//! # CallBody is refused
//!
//! A server that evicts keys when its memory is full (if its policy changes later, it gets no new records), a replica, a
//! cluster member that was not named as one, and a server that has lost records since this process first connected: a
//! generation mark, a key that holds an id and a growing counter, is compared on every connect and every few seconds.
//! Claims made in those seconds are not caught.
//!
//! # How it works
//!
//! A record is one string with a fixed-layout head that scripts can read. A fresh claim is one `SET … NX GET PX`, and so
//! is a replay; every other change is one script on one key, which uses the server's clock and compares the attempt's nonce
//! before it writes. All calls to a server share one connection. This crate sends no call twice, except after a cluster
//! member refused it and redirected to another: a lost reply is [`Unknown`](hapax_core::StoreErrorKind::Unknown), and
//! repeating the call with the same nonce resolves it. The server expires records itself; a sweep has nothing to do, and
//! uncertain records that are not settled in time expire without being counted.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod address;
mod claim;
mod clock;
mod cluster;
mod config;
mod connection;
mod error;
mod facts;
mod generation;
mod layout;
mod list;
mod notifications;
mod probe;
mod replicas;
mod routing;
mod script;
mod server;
mod slots;
mod store;

pub use config::{OUTCOME_BYTES_MAX_DEFAULT, Options, PREFIX_DEFAULT, TIMEOUT_DEFAULT};
pub use error::OpenError;
pub use facts::{FACTS_TIMEOUT_DEFAULT, RedisFacts};
pub use layout::VERSION;
pub use store::{RedisStore, SCOPE_BYTES_MAX};

/// Compiles the code of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/redis.md")]
struct Guide;

// With exactly one cryptography provider linked, the driver finds it as the default.
#[cfg(feature = "tls")]
use rustls as _;
