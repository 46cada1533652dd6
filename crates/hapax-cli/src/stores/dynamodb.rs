//! A DynamoDB table as a store: its URL, and how it is opened and made.

use std::fmt;

use hapax_core::StoreError;
use hapax_store_dynamodb::{DynamoDbStore, OpenError, Options, VERSION};

use super::Migration;

/// The URL of a DynamoDB table.
#[derive(Clone)]
pub(crate) struct DynamoDbUrl {
    typed: String,
    options: Options,
}

impl DynamoDbUrl {
    /// Reads what was typed; otherwise what is wrong with it.
    pub(crate) fn parse(url: &str) -> Result<Self, String> {
        match Options::from_url(url) {
            Ok(options) => Ok(Self { typed: url.to_owned(), options }),
            Err(error) => Err(match open_error(&error) {
                Some(OpenError::Url { why }) => why.clone(),
                _ => error.to_string(),
            }),
        }
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
    matches!(open_error(error), Some(OpenError::Missing { .. }))
}

fn open_error(error: &StoreError) -> Option<&OpenError> {
    std::error::Error::source(error).and_then(|cause| cause.downcast_ref())
}

impl PartialEq for DynamoDbUrl {
    fn eq(&self, other: &Self) -> bool {
        self.typed == other.typed
    }
}

impl Eq for DynamoDbUrl {}

impl fmt::Debug for DynamoDbUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DynamoDbUrl({self})")
    }
}

impl fmt::Display for DynamoDbUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "dynamodb://{}?region={}", self.options.table(), self.options.region())
    }
}
