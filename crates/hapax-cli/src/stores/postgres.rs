//! A PostgreSQL database as a store: its URL, shown without user and password, and how it is opened and migrated.

use std::fmt;

use hapax_core::StoreError;
use hapax_store_postgres::{MigrateMode, OpenError, Options, PostgresStore};

use super::Migration;
use super::typed::{Typed, cause, is_elsewhere, option};

/// The URL of a PostgreSQL database.
pub(crate) type PostgresUrl = Typed<Options>;

impl PostgresUrl {
    /// Reads what was typed; otherwise what is wrong with it, without repeating it.
    pub(crate) fn parse(url: &str) -> Result<Self, String> {
        Self::read(url, Options::from_url(url))
    }

    /// Whether somebody on the way to it could read along: `prefer`, which is meant unless said, goes on without TLS.
    pub(crate) fn is_in_clear(&self) -> bool {
        let mode = option(self.typed(), "sslmode").unwrap_or("prefer");
        matches!(mode, "prefer" | "disable") && is_elsewhere(&self.options.address())
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
        let steps = migrated.steps.iter().map(ToString::to_string).collect();
        Ok(Migration { from: migrated.from.map(version), to: version(migrated.to), steps })
    }
}

/// Whether there is nothing under the URL.
pub(crate) fn is_missing(error: &StoreError) -> bool {
    matches!(cause(error), Some(OpenError::Missing { .. }))
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "postgres://{}?schema={}", self.options.address(), self.options.schema_name())
    }
}
