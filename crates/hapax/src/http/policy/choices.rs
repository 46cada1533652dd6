//! Choices between a few words, each with the word that files have for it.

use serde::{Deserialize, Serialize};

/// Whether a request must have a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum KeyMode {
    /// Nothing is done, with or without a key, whatever the method. No later route takes such a request either.
    Off,
    /// A request with a key is protected; one without passes as it is.
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
    /// Let it run unprotected. Counted, logged, and marked on the response. It may have run before, or be running
    /// elsewhere: nobody can look. What this process runs itself, and what the store has told of, is refused.
    Pass,
}

/// What to do with a request that came in TLS early data, which anybody may send again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum EarlyData {
    /// Ask for it again after the handshake.
    #[default]
    Refuse,
    /// Take it: every node that accepts early data shares one store that claims atomically.
    Accept,
}

/// How the outcome of a response is found out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Classifier {
    /// By its status.
    #[default]
    Status,
    /// As GraphQL: an answer with errors and without data releases, whatever its status.
    GraphQl,
    /// As gRPC: by the status in its trailers.
    Grpc,
}
