//! A DynamoDB table as a store: its URL, opening and migration.

use std::fmt;

use hapax_core::StoreError;
use hapax_store_dynamodb::{DynamoDbStore, OpenError, Options, VERSION};

use super::Migration;
use super::server_url::{ServerUrl, cause, option};

/// The URL of a DynamoDB table.
pub(crate) type DynamoDbUrl = ServerUrl<Options>;

impl DynamoDbUrl {
    /// Parses a URL.
    pub(crate) fn parse(url: &str) -> Result<Self, String> {
        Self::read(url, Options::from_url(url))
    }

    /// Whether it is on another machine and used without TLS.
    pub(crate) fn is_unencrypted(&self) -> bool {
        let endpoint = option(self.as_str(), "endpoint").unwrap_or_default();
        let endpoint = endpoint.replace("%3A", ":").replace("%2F", "/");
        let url = endpoint.parse::<http::Uri>().ok().filter(|url| url.scheme_str() == Some("http"));
        url.is_some_and(|url| url.host().is_some_and(crate::config::is_remote))
    }

    /// Connects. A missing table is not created: that needs other permissions and has a price.
    pub(crate) async fn open(&self) -> Result<DynamoDbStore, StoreError> {
        self.options.clone().connect().await
    }

    /// Creates the table, or returns the steps that this would take.
    pub(crate) async fn migrate(&self, is_dry: bool) -> Result<Migration, StoreError> {
        let changes = if is_dry { self.options.missing().await? } else { self.options.make().await? };
        let from = changes.is_empty().then_some(VERSION);
        Ok(Migration { from, to: VERSION, steps: changes.iter().map(ToString::to_string).collect() })
    }
}

/// Whether the table does not exist.
pub(crate) fn is_missing(error: &StoreError) -> bool {
    matches!(cause(error), Some(OpenError::Missing { .. }))
}

impl fmt::Display for DynamoDbUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "dynamodb://{}?region={}", self.options.table(), self.options.region())
    }
}
