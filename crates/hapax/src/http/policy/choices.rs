//! Options with a few values, each with its name in files.

use serde::{Deserialize, Serialize};

/// Whether a request must have a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum KeyMode {
    /// The layer is disabled, with or without a key, for every method. No later route applies to such a request either.
    Off,
    /// A request with a key is protected; one without passes unchanged.
    #[default]
    Optional,
    /// A request without a key is refused.
    Required,
}

/// What to do with a request when the store cannot take its claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum OnStoreError {
    /// Refuse it; nothing is executed.
    #[default]
    Refuse,
    /// Let it run unprotected: counted, logged, and marked on the response. It may have run before, or be running in
    /// another process, and without the store that is unknown. Requests that this process runs, or that the store has
    /// reported, are refused.
    Pass,
}

/// What to do with a request sent in TLS early data, which an attacker can replay.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum EarlyData {
    /// Ask for it again after the handshake.
    #[default]
    Refuse,
    /// Accept it: all nodes that accept early data share one store that claims atomically.
    Accept,
}

/// How the outcome of a response is determined.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Classifier {
    /// By its status.
    #[default]
    Status,
    /// As GraphQL: a response with errors and without data releases, independent of its status.
    GraphQl,
    /// As gRPC: by the status in its trailers.
    Grpc,
}
