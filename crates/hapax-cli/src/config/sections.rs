//! Sections whose meaning is owned elsewhere: here are only their names, types and defaults.

use std::path::PathBuf;
use std::time::Duration;

use hapax::http::settings::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The listener for operators: health, metrics, records and the console.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AdminOptions {
    /// The address that operators connect to; `off` for none. Beyond loopback only with a token of your own.
    pub(crate) listen: String,
    /// A file that holds the token. Without one, and without `HAPAX_ADMIN_TOKEN`, a token is made at start.
    pub(crate) token_file: Option<PathBuf>,
}

impl Default for AdminOptions {
    fn default() -> Self {
        Self { listen: "127.0.0.1:8081".to_owned(), token_file: None }
    }
}

/// Deadlines and caps of the listener.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Transport {
    /// How long a request's head may take to arrive.
    pub(crate) header_timeout: Span,
    /// How long a connection may be silent between two requests.
    pub(crate) idle_timeout: Span,
    /// How many connections are held at a time.
    pub(crate) connections_max: usize,
}

impl Default for Transport {
    fn default() -> Self {
        Self {
            header_timeout: Span(Duration::from_secs(10)),
            idle_timeout: Span(Duration::from_secs(60)),
            connections_max: 10_000,
        }
    }
}

/// Certificate and key of the listener. Without both it speaks plain HTTP.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Tls {
    /// The certificate with its chain, in PEM.
    pub(crate) certificate: Option<PathBuf>,
    /// Its key, in PEM.
    pub(crate) key: Option<PathBuf>,
}

/// How the service behind is talked to.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct UpstreamOptions {
    /// How long a connection may take to be made.
    pub(crate) connect_timeout: Span,
    /// How long the head of an answer may take.
    pub(crate) response_timeout: Span,
}

impl Default for UpstreamOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Span(Duration::from_secs(5)),
            response_timeout: Span(Duration::from_secs(60)),
        }
    }
}
