//! A PostgreSQL database as a store: its URL, which is printed without user and password, opening and migration.

use std::fmt;

use hapax_core::StoreError;
use hapax_store_postgres::{MigrateMode, OpenError, Options, PostgresStore};

use super::Migration;
use super::server_url::{ServerUrl, cause, is_remote, option};

/// The URL of a PostgreSQL database.
pub(crate) type PostgresUrl = ServerUrl<Options>;

impl PostgresUrl {
    /// Parses a URL. Errors do not repeat it.
    pub(crate) fn parse(url: &str) -> Result<Self, String> {
        Self::read(url, Options::from_url(url))
    }

    /// Whether it is on another machine and used without TLS: with `prefer`, the default, TLS is optional.
    pub(crate) fn is_unencrypted(&self) -> bool {
        let mode = option(self.as_str(), "sslmode").unwrap_or("prefer");
        matches!(mode, "prefer" | "disable") && is_remote(&self.options.address())
    }

    /// Connects. A missing store is not created: the schema may be misspelled.
    pub(crate) async fn open(&self) -> Result<PostgresStore, StoreError> {
        self.options.clone().existing().connect().await
    }

    /// Connects, and creates the tables if they do not exist.
    pub(crate) async fn open_or_create(&self) -> Result<PostgresStore, StoreError> {
        self.options.clone().connect().await
    }

    /// Migrates the tables to the version of this program, or returns the steps that this would take.
    pub(crate) async fn migrate(&self, is_dry: bool) -> Result<Migration, StoreError> {
        let mode = if is_dry { MigrateMode::DryRun } else { MigrateMode::Take };
        let migrated = PostgresStore::migrate(self.options.clone(), mode).await?;
        let version = |number: i32| u32::try_from(number).unwrap_or_default();
        let steps = migrated.steps.iter().map(ToString::to_string).collect();
        Ok(Migration { from: migrated.from.map(version), to: version(migrated.to), steps })
    }
}

/// Whether the store does not exist.
pub(crate) fn is_missing(error: &StoreError) -> bool {
    matches!(cause(error), Some(OpenError::Missing { .. }))
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "postgres://{}?schema={}", self.options.address(), self.options.schema_name())
    }
}
