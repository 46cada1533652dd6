//! [`Settings`]: a server's settings, whether it can be a store, and what can be promised on it.
//!
//! Pure, except for reading a row: it sends nothing.

use hapax_core::Promise;
use tokio_postgres::Row;

use crate::error::OpenError;

/// The oldest version with the features that the statements need, as the server counts: 12.0.
const VERSION_MIN: i32 = 120_000;

/// The settings of a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Settings {
    pub(crate) version: i32,
    pub(crate) is_standby: bool,
    pub(crate) is_read_only: bool,
    pub(crate) has_fsync: bool,
    pub(crate) has_full_pages: bool,
    /// `synchronous_commit` for this user and this database.
    pub(crate) commits: String,
    pub(crate) has_synchronous_standbys: bool,
    /// How many standbys are connected.
    pub(crate) standbys: i64,
}

/// What can be promised on a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Assessment {
    pub(crate) promise: Promise,
    pub(crate) warnings: Vec<String>,
}

impl Settings {
    /// Reads the row of `settings.sql`.
    pub(crate) fn read(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            version: row.try_get("version")?,
            is_standby: row.try_get("is_standby")?,
            is_read_only: row.try_get("is_read_only")?,
            has_fsync: row.try_get("has_fsync")?,
            has_full_pages: row.try_get("has_full_pages")?,
            commits: row.try_get("commits")?,
            has_synchronous_standbys: row.try_get("has_synchronous_standbys")?,
            standbys: row.try_get("standbys")?,
        })
    }

    /// Refuses a server that cannot be a store; otherwise returns what it promises.
    pub(crate) fn assess(&self) -> Result<Assessment, OpenError> {
        if self.version < VERSION_MIN {
            return Err(OpenError::Version { found: self.version });
        }
        if self.is_standby {
            return Err(OpenError::Standby);
        }
        if self.is_read_only {
            return Err(OpenError::ReadOnly);
        }
        let waits_for_standby =
            self.has_synchronous_standbys && !matches!(self.commits.as_str(), "off" | "local");
        let table = [
            (!self.has_fsync, "fsync is off: a power failure loses claims and may damage the whole database"),
            (!self.has_full_pages, "full_page_writes is off: a power failure may damage the whole database"),
            (
                self.commits == "off",
                "synchronous_commit is off: a crash of the server loses the most recent claims",
            ),
            (
                self.standbys > 0 && !waits_for_standby,
                "the server has standbys and does not wait for them: a failover to one loses what it had not copied; \
                 set synchronous_standby_names if one may be promoted",
            ),
        ];
        let warnings: Vec<String> =
            table.iter().filter(|(is_so, _)| *is_so).map(|(_, warning)| (*warning).to_owned()).collect();
        let promise = if warnings.is_empty() { Promise::AtMostOnce } else { Promise::BestEffort };
        Ok(Assessment { promise, warnings })
    }
}

#[cfg(test)]
mod tests;
