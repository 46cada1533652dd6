//! The tower layer: makes any HTTP service safe to retry. For axum, hyper, tonic, and every other user of `http` types.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use axum::{Router, routing::post};
//! use hapax::http::IdempotencyLayer;
//! use hapax::{Hapax, MemoryStore};
//!
//! let hapax = Hapax::new(MemoryStore::new());
//! let app: Router = Router::new()
//!     .route("/orders", post(|| async { "created" }))
//!     .layer(IdempotencyLayer::new(&hapax).for_axum());
//! # });
//! ```
//!
//! A `POST`, `PUT` or `PATCH` with an `Idempotency-Key` is executed once; every retry gets the recorded response,
//! marked `X-Idempotent-Replayed: true`. Requests without a key pass unchanged, unless a route
//! [requires](KeyMode::Required) one.
//!
//! # The life of a request
//!
//! 1. **Coverage.** A route, a method, and a key (or a route that requires one). A request that is not covered passes
//!    unchanged.
//! 2. **Scope.** The key is unique within its principal, method and path.
//! 3. **Fingerprint.** The body is read within limits, and the request is fingerprinted.
//! 4. **Claim.** One atomic step in the store. A key that was used for another request is refused; a duplicate of a
//!    running request is refused or waits; one of a finished request is answered from its record.
//! 5. **Run.** The inner service runs in its own task. A client that disconnects does not stop it.
//! 6. **Record, then respond.** The [`Outcome`] of the response is recorded before its first byte is sent.
//!
//! A handler finds the [`IdempotencyKey`] and the [`Context`](crate::Context) of its attempt in the request's
//! extensions; with the feature `axum`, as extractors.
//!
//! # Limitations
//!
//! - Responses larger than [`outcome_bytes_max`](HttpPolicy::outcome_bytes_max) and event streams are streamed to their
//!   client. The record states that the request ran, without its response: a retry is refused with that reason, and the
//!   request does not run again.
//! - With axum, enable the feature `axum`: inside a nested router only that gives access to the path that the client
//!   sent.
//! - A key is unique within one store. Two regions with separate stores do not share keys.

mod answer;
mod body;
mod canonical;
mod capture;
mod classify;
#[cfg(feature = "decode")]
mod decode;
mod dialect;
mod digest;
pub mod document;
pub mod exchange;
mod fingerprint;
mod future;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
mod grpc;
mod key_place;
mod key_source;
mod layer;
mod limits;
mod observer;
mod path;
mod policy;
mod problem;
mod protection;
mod reach;
mod rules;
mod scope;
mod service;
pub mod settings;
#[cfg(feature = "webhook")]
mod webhook;

#[cfg(feature = "axum")]
pub mod axum;

use hapax_core::Key;

pub use self::answer::{Answer, AnswerError};
pub use self::body::{RequestBody, ResponseBody};
pub use self::classify::{Outcome, StatusSet, StatusSetError};
#[cfg(feature = "decode")]
pub use self::decode::DecodeLimits;
pub use self::dialect::{Dialect, UnknownDialect};
pub use self::document::PolicyDocument;
pub use self::fingerprint::NeverCounts;
pub use self::future::ResponseFuture;
pub use self::grpc::GrpcStatus;
pub use self::key_place::{KeyPlace, KeyPlaceError};
pub use self::layer::IdempotencyLayer;
pub use self::limits::{Rate, RateError};
pub use self::observer::Observer;
pub use self::path::{PathCase, PathPattern, PathPatternError};
pub use self::policy::{Classifier, EarlyData, HttpPolicy, KeyMode, OnStoreError};
pub use self::problem::{Code, RefusalShape, RefusalShapeError, RefusalShapeName, TYPE_BASE};
pub use self::protection::Protection;
pub use self::reach::{UnreachableRoute, unreachable_route};
pub use self::scope::{
    Anonymous, DERIVED_KEY_MARK, Endpoint, Principal, PrincipalError, Sources, is_http_operation,
};
pub use self::service::Idempotency;
pub use self::settings::Settings;
#[cfg(feature = "webhook")]
pub use self::webhook::{Webhook, WebhookError};

/// The key of a protected request, in its extensions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IdempotencyKey(pub Key);
