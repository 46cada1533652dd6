//! The DynamoDB store of Hapax: many machines, one item per key, one conditional write per change.
//!
//! | table | owner or executor crashes or pauses | service fails over inside its Region | other Regions | promise |
//! |---|---|---|---|---|
//! | of one Region | at most once holds | conditional writes of one item stay linearisable, according to AWS | none | at most once; exactly-once effect for [`Writes`] |
//! | global, strongly consistent | holds | as above | as one Region; not tested | at most once |
//! | global, eventually consistent | holds | as above | two Regions can both claim a key | refused; best effort where accepted |
//! | of DynamoDB Local | holds while it runs | — | — | best effort: it is for tests |
//!
//! [`health`](hapax_core::Store::health) reports which row is in force, from the table's description.
//!
//! # Set-up
//!
//! ```no_run
//! # async fn connect() -> Result<(), hapax_core::StoreError> {
//! use hapax_store_dynamodb::DynamoDbStore;
//!
//! let options = DynamoDbStore::options("dynamodb://hapax?region=eu-central-1")?;
//! options.make().await?; // once, or `hapax migrate`
//! let store = options.connect().await?;
//! # Ok(())
//! # }
//! ```
//!
//! Credentials come from the environment, a profile of the shared files, single sign-on, web identity, the container or the
//! instance, in this order; see [`CredentialsSource`] for other sources.
//!
//! # How it works
//!
//! A record is one item. A fresh claim is one `PutItem` on condition that there is none; if there is one, the response
//! contains it, so that a replay is one call too. Every other change is decided by [`transition`](hapax_core::transition) in
//! this process and written on condition that the item is unchanged. A process remembers the claims that it wrote, so that
//! completing one is one call. An outcome that is too large for an item is written in parts before the record refers to
//! them.
//!
//! DynamoDB has no clock for leases. A claim has lapsed for a process that has seen the same version of it for a whole lease
//! on its own monotonic clock; every renewal writes another version. So a claim whose owner died stays busy for one more
//! lease, counted from the first time that another process saw it. Retention is counted on the service's clock, which every
//! response carries.
//!
//! This crate sends no call twice unless the service reported that it did nothing: a lost reply is
//! [`Unknown`](hapax_core::StoreErrorKind::Unknown), and repeating the call with the same nonce resolves it.

mod attempt_writes;
mod change;
mod chunks;
mod client;
mod conditions;
mod config;
mod connection;
mod credentials;
mod error;
mod item;
mod list;
mod scan;
mod sightings;
mod sign;
mod store;
mod sweep;
mod table;
mod time;
mod transaction;

pub use attempt_writes::AttemptWrites;
pub use config::{
    CLAIMS_SEEN_MAX_DEFAULT, CONNECTIONS_MAX_DEFAULT, OUTCOME_BYTES_MAX_DEFAULT, Options, TIMEOUT_DEFAULT,
};
pub use credentials::{Credentials, CredentialsSource};
pub use error::OpenError;
pub use item::VERSION;
pub use store::{DynamoDbStore, SCOPE_BYTES_MAX};
pub use table::Step;
pub use transaction::{Declined, Writes};

/// Compiles the code of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/dynamodb.md")]
struct Guide;
