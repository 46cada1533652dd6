//! The DynamoDB store of Hapax: many machines, one item per key, one conditional write per change.
//!
//! | table | owner or executor crashes or pauses | service fails over inside its Region | other Regions | promise |
//! |---|---|---|---|---|
//! | of one Region | at most once holds | conditional writes of one item stay linearisable, says AWS | none | at most once; exactly-once effect for [`Writes`] |
//! | global, strongly consistent | holds | as above | as one Region; never tested by us | at most once |
//! | global, eventually consistent | holds | as above | two Regions can both claim a key | refused; best effort where accepted |
//! | of DynamoDB Local | holds while it lives | — | — | best effort: it is for tests |
//!
//! [`health`](hapax_core::Store::health) tells which row is in force, from what the service says of the table.
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
//! Credentials are those of the environment, a shared file, the container or the instance; see [`CredentialsSource`] for
//! all others.
//!
//! # How it works
//!
//! A record is one item. A fresh claim is one `PutItem` on condition that there is none, and it brings back what is there
//! if there is one, so that a replay is one call too. Everything else is decided by
//! [`transition`](hapax_core::transition) in this process and written on condition that the item is still the one that was
//! decided about. A process remembers the claims that it wrote, so that completing one is one call. An outcome that is too
//! large for an item is written in parts before the record tells of them.
//!
//! DynamoDB has no clock to judge a lease by. A claim has lapsed for a process that has seen the same version of it for a
//! whole lease on its own steady clock; every renewal writes another version. So a claim whose owner died is busy for one
//! lease more, counted from the first time that somebody else asked. Retention is counted on the service's clock, which
//! every answer tells.
//!
//! No call is sent twice by this crate unless the service said that it did nothing: a lost answer is
//! [`Unknown`](hapax_core::StoreErrorKind::Unknown), and the same call with the same nonce tells the truth.

mod change;
mod chunks;
mod conditions;
mod config;
mod connection;
mod credentials;
mod error;
mod item;
mod link;
mod list;
mod scan;
mod seen;
mod sign;
mod store;
mod sweep;
mod table;
mod time;
mod transaction;

pub use config::{
    CLAIMS_SEEN_MAX_DEFAULT, CONNECTIONS_MAX_DEFAULT, OUTCOME_BYTES_MAX_DEFAULT, Options, TIMEOUT_DEFAULT,
};
pub use credentials::{Credentials, CredentialsSource};
pub use error::OpenError;
pub use item::VERSION;
pub use store::{DynamoDbStore, SCOPE_BYTES_MAX};
pub use table::Step;
pub use transaction::{Declined, Writes};

/// The code of the guide is compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/dynamodb.md")]
struct Guide;
