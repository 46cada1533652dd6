//! The PostgreSQL store of Hapax: many machines, one row per key, concurrent calls in one commit.
//!
//! | server | owner or executor crashes or pauses | server killed, same disk | power loss | failover | promise |
//! |---|---|---|---|---|---|
//! | one server, `fsync` and `synchronous_commit` on | at most once holds | durable | durable if the disk honours fsync | none | at most once |
//! | with standbys that are not waited for | holds | durable | durable | the last claims can be lost | best effort |
//! | with synchronous standbys, of which one is promoted | holds | durable | durable | holds, unless a commit's wait was cut short | at most once |
//! | `synchronous_commit` or `fsync` off | holds | the last claims can be lost | lost, perhaps all | – | best effort |
//! | any of these through a pooler | the same: nothing is kept in a server's connection | | | | unchanged |
//!
//! Where a claim is lost, its operation can run again. [`health`](hapax_core::Store::health) tells which row is in force,
//! from the server's own settings. It cannot tell when somebody cuts short a commit's wait for its standby, with
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
//! PostgreSQL 12 or newer. The tables are made in a schema of their own where there are none; later versions of them are
//! brought about by [`PostgresStore::migrate`] or `hapax migrate`. See [`Options`] for the rest.
//!
//! # How it works
//!
//! A record is one row. A claim is one `INSERT … ON CONFLICT DO NOTHING` that also tells what is there already; a
//! completion is one `UPDATE` on condition that the row still holds the attempt's nonce. Claims and writes that come
//! while others are under way go together in statements of many rows, so that many callers share one commit; a call
//! that finds nothing under way goes at once. The server's clock judges. Every statement is a
//! transaction of its own and leaves nothing behind in its connection: no prepared statement, no setting, no lock.
//!
//! # In one transaction with your own writes
//!
//! [`PostgresStore::once_in`] claims, runs and completes in a transaction of yours, and [`PostgresStore::transaction_of`]
//! commits what a handler writes together with its outcome. Within that transaction the effect happens exactly once,
//! wherever the table above says that nothing is lost.
//!
//! # When answers are lost
//!
//! A statement whose answer was lost is sent again on another connection while there is time: it carries its nonce, so
//! it tells what the first one did. After that the call is [`Unknown`](hapax_core::StoreErrorKind::Unknown).
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "axum")]
mod axum;
mod claim;
mod config;
mod connection;
mod error;
mod joined;
mod lane;
mod link;
mod list;
mod migrate;
mod row;
mod server;
mod sql;
mod store;
mod sweep;
mod tls;
mod tx;
mod url;
mod wake;
mod write;

#[cfg(feature = "axum")]
pub use self::axum::TxRejection;
pub use config::{OUTCOME_BYTES_MAX_DEFAULT, Options, POOL_DEFAULT, SCHEMA_DEFAULT, TIMEOUT_DEFAULT};
pub use error::OpenError;
pub use joined::Tx;
pub use migrate::{MigrateMode, Migrated, VERSION};
pub use store::{PostgresStore, SCOPE_BYTES_MAX};
pub use tx::{Done, OnceIn, OnceInError, RETENTION_DEFAULT, WAIT_DEFAULT};

/// The code of the guide is compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/postgres.md")]
struct Guide;
