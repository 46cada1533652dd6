//! Sections whose meaning is owned elsewhere: here are only their names, types and defaults.

use std::path::PathBuf;

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

/// Certificate and key of the listener. Without both it speaks plain HTTP.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TlsSection {
    /// The certificate with its chain, in PEM.
    pub(crate) certificate: Option<PathBuf>,
    /// Its key, in PEM.
    pub(crate) key: Option<PathBuf>,
}
