//! The Hapax protocol, for people who write stores and broker adapters.
//!
//! This crate knows what a key, a record and a claim are and how they may change. It does no I/O, starts no
//! task and knows no HTTP. People who *use* Hapax want the crate `hapax`.
//!
//! In reading order:
//!
//! | module | what it owns |
//! |---|---|
//! | [`key`] | what a caller names an operation by, and what that name is unique within |
//! | [`fingerprint`] | the digest of what makes two requests the same |
//! | [`record`] | what is stored for one key |
//! | [`transition`] | the state machine, as pure functions: the one truth |
//! | [`store`] | the contract every store keeps |
//! | [`newest`] | a page of a store that has no order to page by |
//! | [`facts`] | a quick place for finished records, in front of a store |
//! | [`codec`] | records as bytes |
//! | [`clock`] | who says what time it is |
//! | [`error`] | what a store may answer when it cannot answer |
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
pub use key::{Key, KeyError, KeyFormat, KeyRules, RecordId, Scope, ScopedKey};
pub use newest::Newest;
pub use record::{Class, Fence, Format, Nonce, Reason, Record, Recorded, State, Status, Timestamp};
pub use size::{ByteSize, ByteSizeError};
pub use store::{
    BoxFuture, Claim, ClaimRequest, Deleted, Fenced, Health, Lease, Lookup, OnLapse, Page, Promise, Query,
    Settled, Settlement, Stats, Store, Swept, Verdict,
};
