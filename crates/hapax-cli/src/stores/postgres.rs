//! A PostgreSQL database as a store: its URL, shown without user and password, and how it is opened and migrated.

use std::fmt;

use hapax_core::StoreError;
use hapax_store_postgres::{MigrateMode, OpenError, Options, PostgresStore};

use super::Migration;

/// The URL of a PostgreSQL database.
#[derive(Clone)]
pub(crate) struct PostgresUrl {
    typed: String,
    options: Options,
}

impl PostgresUrl {
    /// Reads what was typed; otherwise what is wrong with it, without repeating it.
    pub(crate) fn parse(url: &str) -> Result<Self, String> {
        match Options::from_url(url) {
            Ok(options) => Ok(Self { typed: url.to_owned(), options }),
            Err(error) => Err(match open_error(&error) {
                Some(OpenError::Url { why }) => why.clone(),
                _ => error.to_string(),
            }),
        }
    }

    /// Connects. A store in a mistyped schema is not made, unless somebody runs operations with it.
    pub(crate) async fn open(&self) -> Result<PostgresStore, StoreError> {
        self.options.clone().existing().connect().await
    }

    /// Connects, and makes the tables where there are none.
    pub(crate) async fn open_or_make(&self) -> Result<PostgresStore, StoreError> {
        self.options.clone().connect().await
    }

    /// Brings the tables to the version of this program, or tells what that would take.
    pub(crate) async fn migrate(&self, is_dry: bool) -> Result<Migration, StoreError> {
        let mode = if is_dry { MigrateMode::DryRun } else { MigrateMode::Take };
        let migrated = PostgresStore::migrate(self.options.clone(), mode).await?;
        let version = |number: i32| u32::try_from(number).unwrap_or_default();
        Ok(Migration { from: migrated.from.map(version), to: version(migrated.to), steps: migrated.steps })
    }
}

/// Whether there is nothing under the URL.
pub(crate) fn is_missing(error: &StoreError) -> bool {
    matches!(open_error(error), Some(OpenError::Missing { .. }))
}

fn open_error(error: &StoreError) -> Option<&OpenError> {
    std::error::Error::source(error).and_then(|cause| cause.downcast_ref())
}

impl PartialEq for PostgresUrl {
    fn eq(&self, other: &Self) -> bool {
        self.typed == other.typed
    }
}

impl Eq for PostgresUrl {}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgresUrl({self})")
    }
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "postgres://{}?schema={}", self.options.address(), self.options.schema_name())
    }
}
