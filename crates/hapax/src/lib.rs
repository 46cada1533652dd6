//! Retry anything, it happens once.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use hapax::{Hapax, MemoryStore};
//!
//! let hapax = Hapax::new(MemoryStore::new());
//! let order = serde_json::json!({ "item": "book", "amount": 2 });
//!
//! // The body runs once for all calls with one key.
//! for _ in 0..3 {
//!     let done = hapax
//!         .once("create-order", "order-123")
//!         .input(&order)
//!         .run(|cx| async move {
//!             // Send `cx.effect_key("charge")` to the payment provider as its idempotency key.
//!             Ok::<_, std::io::Error>(format!("created in attempt {}", cx.attempt()))
//!         })
//!         .await
//!         .unwrap();
//!     assert_eq!(done.value, "created in attempt 1");
//! }
//! # });
//! ```
//!
//! # What is promised
//!
//! *At most once* by default: a crash during execution leaves the key **uncertain** until it is settled, and nothing is
//! executed again automatically. [`OnLapse::Rerun`] makes it *at least once*. Durability depends on the store.
//!
//! | store | crate | promise |
//! |---|---|---|
//! | [`MemoryStore`] | here | de-duplication within one process |
//! | `FileStore` | `hapax-store-file` | at most once on one machine, durable before it is acknowledged |
//! | `PostgresStore` | `hapax-store-postgres` | at most once for many machines; best effort with standbys that commits do not wait for; writes in the same transaction commit with their outcome |
//! | `RedisStore` | `hapax-store-redis` | at most once on one durable server for many machines, otherwise best effort |
//! | `DynamoDbStore` | `hapax-store-dynamodb` | at most once in its Region; writes in the same transaction commit with their outcome |
//! | [`Tiers`] | here, with `RedisFacts` of `hapax-store-redis` | that of the underlying store; Redis answers retries of finished operations |
//!
//! # Features
//!
//! None is enabled by default; functions need none.
//!
//! | feature | content |
//! |---|---|
//! | `http` | the tower layer for every user of `http` types: hyper, tonic, Lambda |
//! | `axum` | extractors for handlers, `for_axum`, and keys by the path that the client sent also in nested routers |
//! | `webhook` | the receiver of webhooks: signatures and ids |
//! | `decode` | request bodies decoded before fingerprinting, if a route is configured so |
//! | `regex` | paths and keys by regular expression |
//! | `schema` | the JSON Schema of the options of routes |
//!
//! # Where to start
//!
//! [`Hapax`] is the entry point, [`Once`] one operation, [`Policy`] its rules, [`Context`] the information about a run,
//! [`observe`] the metrics. [`engine`] is for authors of surfaces, `hapax-core` and `hapax-testkit` are for authors of
//! stores.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod engine;
mod function;
mod hapax;
#[cfg(feature = "http")]
pub mod http;
mod memory;
pub mod observe;
pub mod policy;
mod tiers;

pub use hapax_core as core;
pub use hapax_core::{Key, KeyError, OnLapse, Scope};

pub use crate::engine::{Context, LeaseLost, Question, Reconciled};
pub use crate::function::{Done, Fail, IntoKey, IntoOutcome, Once, OnceError, StoredError};
pub use crate::hapax::{Builder, Drained, GetError, Hapax, Keeper};
pub use crate::memory::MemoryStore;
pub use crate::policy::{ExpiredKeys, Policy};
pub use crate::tiers::Tiers;

#[cfg(all(doctest, feature = "axum"))]
#[doc = include_str!("../../../README.md")]
struct Readme;

#[cfg(all(doctest, feature = "axum"))]
#[doc = include_str!("../../../docs/guide/http.md")]
struct HttpGuide;

#[cfg(all(doctest, feature = "http"))]
#[doc = include_str!("../../../docs/guide/grpc.md")]
struct GrpcGuide;

#[cfg(all(doctest, feature = "axum"))]
#[doc = include_str!("../../../docs/guide/lambda.md")]
struct LambdaGuide;

#[cfg(all(doctest, feature = "axum", feature = "webhook"))]
#[doc = include_str!("../../../docs/guide/webhooks.md")]
struct WebhookGuide;
