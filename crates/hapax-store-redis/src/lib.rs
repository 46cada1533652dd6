//! The Redis store of Hapax: many machines, one record per key, one fenced script per change.
//!
//! | server | owner or executor crashes or pauses | server killed, same disk | power loss | failover | promise |
//! |---|---|---|---|---|---|
//! | no append-only file | at most once holds while it lives | claims are lost | claims are lost | — | best effort |
//! | `appendfsync everysec` | holds | up to two seconds lost when the disk is slow | one or two seconds lost | — | best effort |
//! | `appendfsync always`, `noeviction`, no replicas | holds | durable | durable if the disk honours fsync | none | at most once |
//! | with replicas, or a cluster | holds between failovers | as above | as above | acknowledged claims can be lost | best effort |
//!
//! Where a claim is lost, its operation can run again. [`health`](hapax_core::Store::health) tells which row is in force,
//! from the server's own settings.
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
//! Redis 7 or newer is best; 6.2 works and takes a script for every claim. `rediss://` is TLS, `redis+sentinel://` asks
//! sentinels where the primary is, and `redis+cluster://` is a cluster. See [`Options`] for the rest.
//!
//! # What is refused
//!
//! A server that drops keys when it is full (also one whose policy is changed later: it gets no new records), a replica, a member of a cluster that was not named as one. A server that has
//! lost records since this process first looked: a key of its own holds an id and a growing number, and both are compared
//! when connecting and every few seconds. Claims made in those seconds are not caught.
//!
//! # How it works
//!
//! A record is one string. Its first bytes stand at fixed places, so that scripts can read them. A fresh claim is one
//! `SET … NX GET PX`, and so is a replay; everything else is one script on one key, which judges by the server's clock
//! and compares the attempt's nonce before it writes. All calls to a server share one connection. None is sent twice by
//! this crate, except when a member of a cluster has refused it and named another: a lost answer is [`Unknown`](hapax_core::StoreErrorKind::Unknown), and the same call with the same nonce tells the
//! truth. The server removes records itself; a sweep has nothing to do, and uncertain records that nobody settled in
//! their time go without being counted.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod address;
mod claim;
mod clock;
mod cluster;
mod config;
mod error;
mod facts;
mod layout;
mod link;
mod list;
mod look;
mod mark;
mod replicas;
mod script;
mod server;
mod slots;
mod store;
mod wake;
mod way;

pub use config::{OUTCOME_BYTES_MAX_DEFAULT, Options, PREFIX_DEFAULT, TIMEOUT_DEFAULT};
pub use error::OpenError;
pub use facts::{FACTS_TIMEOUT_DEFAULT, RedisFacts};
pub use layout::VERSION;
pub use store::{RedisStore, SCOPE_BYTES_MAX};

/// The code of the guide is compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/redis.md")]
struct Guide;

// The driver finds the provider of cryptography by itself when there is just this one.
#[cfg(feature = "tls")]
use rustls as _;
