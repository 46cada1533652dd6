//! The Hapax protocol, for authors of stores and broker adapters.
//!
//! This crate defines keys, records and claims, and their transitions. It does no I/O, spawns no task and has no
//! notion of HTTP. Applications use the crate `hapax`.
//!
//! In reading order:
//!
//! | module | contents |
//! |---|---|
//! | [`key`] | the caller's name for an operation, and the scope in which it is unique |
//! | [`fingerprint`] | the digest by which two requests are compared |
//! | [`record`] | the stored state of one key |
//! | [`transition`] | the state machine, as pure functions: the source of truth |
//! | [`store`] | the `Store` trait and its contract |
//! | [`newest`] | pagination for stores without a sorted index |
//! | [`facts`] | an external cache of finished records, in front of a store |
//! | [`caching`] | how long an in-process cache may keep finished records |
//! | [`codec`] | the binary encoding of records |
//! | [`clock`] | the clock of a store |
//! | [`error`] | errors of store calls |
#![warn(missing_docs)]

pub mod caching;
pub mod clock;
pub mod codec;
pub mod error;
pub mod facts;
pub mod fingerprint;
mod json;
pub mod key;
mod length;
pub mod newest;
pub mod record;
mod size;
pub mod store;
mod text;
pub mod transition;

pub use caching::{Caching, Deletions};
pub use clock::{Clock, ManualClock, SystemClock};
pub use error::{StoreError, StoreErrorKind};
pub use facts::{Fact, FactStore};
pub use fingerprint::{Fingerprint, FingerprintBuilder, Select};
pub use json::DEPTH_MAX as JSON_DEPTH_MAX;
pub use json::{JsonPointer, JsonPointerError, JsonStringError, json_string_at, json_text_at};
pub use key::{Key, KeyError, KeyFields, KeyFieldsError, KeyFormat, KeyRules, RecordId, Scope, ScopedKey};
pub use newest::Newest;
pub use record::{Class, Fence, Format, Nonce, Reason, Record, Recorded, State, Status, Timestamp};
pub use size::{ByteSize, ByteSizeError};
pub use store::{
    BoxFuture, Claim, ClaimRequest, Deleted, Fenced, Health, Lease, Lookup, OnLapse, Page, Promise, Query,
    Settled, Settlement, Stats, Store, Swept, Verdict,
};
