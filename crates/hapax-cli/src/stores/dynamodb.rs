//! A DynamoDB table as a store: its URL, and how it is opened and made.

use std::fmt;

use hapax_core::StoreError;
use hapax_store_dynamodb::{DynamoDbStore, OpenError, Options, VERSION};

use super::Migration;
use super::typed::{Typed, cause, option};

/// The URL of a DynamoDB table.
pub(crate) type DynamoDbUrl = Typed<Options>;

impl DynamoDbUrl {
    /// Reads what was typed; otherwise what is wrong with it.
    pub(crate) fn parse(url: &str) -> Result<Self, String> {
        Self::read(url, Options::from_url(url))
    }

    /// Whether somebody on the way to it could read along.
    pub(crate) fn is_in_clear(&self) -> bool {
        let endpoint = option(self.typed(), "endpoint").unwrap_or_default();
        let endpoint = endpoint.replace("%3A", ":").replace("%2F", "/");
        let url = endpoint.parse::<http::Uri>().ok().filter(|url| url.scheme_str() == Some("http"));
        url.is_some_and(|url| url.host().is_some_and(crate::config::is_elsewhere))
    }

    /// Connects. A table is never made here: that takes other permissions and costs money.
    pub(crate) async fn open(&self) -> Result<DynamoDbStore, StoreError> {
        self.options.clone().connect().await
    }

    /// Makes the table a store, or tells what that would take.
    pub(crate) async fn migrate(&self, is_dry: bool) -> Result<Migration, StoreError> {
        let changes = if is_dry { self.options.missing().await? } else { self.options.make().await? };
        let from = changes.is_empty().then_some(VERSION);
        Ok(Migration { from, to: VERSION, steps: changes.iter().map(ToString::to_string).collect() })
    }
}

/// Whether there is no such table.
pub(crate) fn is_missing(error: &StoreError) -> bool {
    matches!(cause(error), Some(OpenError::Missing { .. }))
}

impl fmt::Display for DynamoDbUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "dynamodb://{}?region={}", self.options.table(), self.options.region())
    }
}
