//! The PostgreSQL store of Hapax: many machines, one row per key, concurrent calls in one commit.
//!
//! | server | owner or executor crashes or pauses | server killed, same disk | power loss | failover | promise |
//! |---|---|---|---|---|---|
//! | one server, `fsync` and `synchronous_commit` on | at most once holds | durable | durable if the disk honours fsync | none | at most once |
//! | with asynchronous standbys | holds | durable | durable | the last claims can be lost | best effort |
//! | with synchronous standbys, of which one is promoted | holds | durable | durable | holds, unless a commit's wait was cut short | at most once |
//! | `synchronous_commit` or `fsync` off | holds | the last claims can be lost | lost, perhaps all | – | best effort |
//! | any of these through a pooler | the same: connections carry no state | | | | unchanged |
//!
//! A lost claim lets its operation run again. [`health`](hapax_core::Store::health) reports which row is in force, read
//! from the server's settings. It cannot detect that a commit's wait for its standby was cancelled, with
//! `pg_cancel_backend` for example: the server then reports success, with a warning that this crate does not see, and a
//! failover at that moment can lose the claim.
//!
//! # Set-up
//!
//! ```no_run
//! # async fn connect() -> Result<(), hapax_core::StoreError> {
//! let store = hapax_store_postgres::PostgresStore::connect("postgres://shop@db/orders?schema=shop_hapax").await?;
//! # Ok(())
//! # }
//! ```
//!
//! PostgreSQL 12 or newer. The tables are created in their own schema if absent; [`PostgresStore::migrate`] or
//! `hapax migrate` upgrades them. See [`Options`] for the rest.
//!
//! # How it works
//!
//! A record is one row. A claim is one `INSERT … ON CONFLICT DO NOTHING` that also returns existing records; a completion
//! is one `UPDATE` on condition that the row still holds the attempt's nonce. Concurrent claims and writes are batched into
//! multi-row statements, so that many callers share one commit; a call that finds nothing in flight is sent at once. Only
//! the server's clock decides. Every statement is a transaction of its own and leaves nothing behind in its connection: no
//! prepared statement, no setting, no lock.
//!
//! # In one transaction with your own writes
//!
//! [`PostgresStore::once_in`] claims, runs and completes in a transaction of yours, and [`PostgresStore::transaction_of`]
//! commits a handler's writes together with its outcome, and `in_tx` (feature `events`) those of a consumer of events. Within that transaction the effect happens exactly once, wherever
//! the table above says that nothing is lost.
//!
//! # Lost replies
//!
//! A statement whose reply was lost is sent again on another connection while there is time: its nonce resolves what the
//! first one did. After that the call is [`Unknown`](hapax_core::StoreErrorKind::Unknown).
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "axum")]
mod axum;
mod batcher;
mod claim;
mod config;
mod error;
mod executor;
mod handler_tx;
#[cfg(feature = "events")]
mod in_tx;
mod list;
mod migrate;
mod notifications;
mod pool;
mod row;
mod server;
mod sql;
mod store;
mod sweep;
mod tls;
mod tx;
mod url;
mod write;

#[cfg(feature = "axum")]
pub use self::axum::TxRejection;
pub use config::{OUTCOME_BYTES_MAX_DEFAULT, Options, POOL_DEFAULT, SCHEMA_DEFAULT, TIMEOUT_DEFAULT};
pub use error::OpenError;
pub use handler_tx::Tx;
#[cfg(feature = "events")]
pub use in_tx::InTx;
pub use migrate::{MigrateMode, Migrated, VERSION};
pub use store::{PostgresStore, SCOPE_BYTES_MAX};
pub use tx::{Done, OnceIn, OnceInError, RETENTION_DEFAULT, WAIT_DEFAULT};

/// Compiles the code of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/postgres.md")]
struct Guide;
