//! Migrations: the steps that build the tables, and the transaction that applies the missing ones.
//!
//! A step only adds, so that programs which know the older tables keep working while it is applied and afterwards. A step
//! that cannot do so states the oldest program that may continue. A transaction-scoped advisory lock keeps two processes
//! from applying the same step.

use hapax_core::{StoreError, StoreErrorKind};
use tokio::time::timeout_at;
use tokio_postgres::types::Type;
use tokio_postgres::{Error, GenericClient};

use crate::error::{Effect, Fault, OpenError};
use crate::pool::ConnectionPool;
use crate::sql;

/// The version of the tables that this crate creates and needs.
pub const VERSION: i32 = 1;

/// The advisory lock's number, "hapax" and a little: other programs use other numbers.
const LOCK: i32 = 0x6861_7078;

/// The table of applied steps, each with the oldest program that may use the tables since.
const LEDGER: &str = "CREATE TABLE IF NOT EXISTS SCHEMA.migration (\
    version integer PRIMARY KEY, name text NOT NULL, oldest_program integer NOT NULL, \
    taken_at timestamptz NOT NULL DEFAULT clock_timestamp())";

/// One step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Migration {
    pub(crate) version: i32,
    pub(crate) name: &'static str,
    /// The oldest version of this crate's tables whose programs may continue after it.
    pub(crate) oldest_program: i32,
    pub(crate) sql: &'static str,
}

/// All steps, in order.
pub(crate) const MIGRATIONS: &[Migration] = &[Migration {
    version: 1,
    name: "records",
    oldest_program: 1,
    sql: include_str!("migrations/0001_records.sql"),
}];

/// What a migration did, or would do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Migrated {
    /// The version of the tables before; none when there were none.
    pub from: Option<i32>,
    /// Their version afterwards.
    pub to: i32,
    /// The names of the applied steps.
    pub steps: Vec<&'static str>,
}

/// Whether a migration is committed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MigrateMode {
    /// The steps are applied.
    Take,
    /// The steps are applied and rolled back, which proves that they can be applied.
    DryRun,
}

/// The version of the tables, and the oldest program that may use them; `None` when there are none.
pub(crate) async fn version<C: GenericClient + Sync>(
    client: &C,
    schema: &str,
) -> Result<Option<(i32, i32)>, Error> {
    // Not by to_regclass: it may have cached, before the lock was acquired, that there is none.
    let find = "SELECT EXISTS (SELECT FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace \
                WHERE nspname = $1 AND relname = 'migration')";
    let there = client.query_typed_one(find, &[(&schema, Type::TEXT)]).await?;
    if !there.try_get::<_, bool>(0)? {
        return Ok(None);
    }
    let select = format!("SELECT max(version), max(oldest_program) FROM \"{schema}\".migration");
    let row = client.query_typed_one(&select, &[]).await?;
    let (found, oldest): (Option<i32>, Option<i32>) = (row.try_get(0)?, row.try_get(1)?);
    Ok(found.zip(oldest))
}

/// Refuses incompatible tables.
pub(crate) fn check(found: Option<(i32, i32)>, schema: &str) -> Result<(), OpenError> {
    match found {
        None => Err(OpenError::Missing { schema: schema.to_owned() }),
        Some((found, _)) if found < VERSION => Err(OpenError::Outdated { found }),
        // A newer program has migrated, and declares this version compatible.
        Some((_, oldest_program)) if oldest_program <= VERSION => Ok(()),
        Some((found, _)) => Err(OpenError::TooNew { found }),
    }
}

/// Applies the missing steps of `known`, all or none of them.
pub(crate) async fn migrate(
    pool: &ConnectionPool,
    known: &'static [Migration],
    mode: MigrateMode,
) -> Result<Migrated, StoreError> {
    const OP: &str = "migrate";
    let deadline = pool.long_deadline();
    let mut connection = pool.acquire(OP, deadline).await?;
    let schema = &pool.options.schema;
    let migrating = async {
        let transaction = connection.client_mut().transaction().await?;
        let lock = "SELECT pg_advisory_xact_lock($1, hashtext($2))";
        transaction.query_typed(lock, &[(&LOCK, Type::INT4), (schema, Type::TEXT)]).await?;
        let from = version(&transaction, schema).await?.map(|(found, _)| found);
        let missing: Vec<&Migration> =
            known.iter().filter(|step| from.is_none_or(|found| step.version > found)).collect();
        if !missing.is_empty() {
            // A user without permission to create schemas may have been given one.
            let find = "SELECT NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)";
            let is_absent = transaction.query_typed_one(find, &[(schema, Type::TEXT)]).await?;
            if is_absent.try_get(0)? {
                transaction.batch_execute(&format!("CREATE SCHEMA \"{schema}\"")).await?;
            }
            transaction.batch_execute(&sql::text(LEDGER, schema)).await?;
        }
        for step in &missing {
            transaction.batch_execute(&sql::text(step.sql, schema)).await?;
            let taken = format!(
                "INSERT INTO \"{schema}\".migration (version, name, oldest_program) VALUES ($1, $2, $3)"
            );
            let parameters: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 3] =
                [(&step.version, Type::INT4), (&step.name, Type::TEXT), (&step.oldest_program, Type::INT4)];
            transaction.execute_typed(&taken, &parameters).await?;
        }
        match mode {
            MigrateMode::Take => transaction.commit().await?,
            MigrateMode::DryRun => transaction.rollback().await?,
        }
        let to = missing.last().map(|step| step.version).or(from).unwrap_or_default();
        Ok(Migrated { from, to, steps: missing.iter().map(|step| step.name).collect() })
    };
    let migrated = timeout_at(deadline, migrating).await;
    // After a failure the connection is closed: the transaction may still be open on it.
    match migrated {
        Ok(Err(error)) => Err(Fault::of(&error).error(OP, Effect::Write)),
        ended => connection.end(OP, Effect::Write, ended),
    }
}

/// Checks that the tables exist, and creates them if they are absent and that is allowed.
pub(crate) async fn ensure(pool: &ConnectionPool, may_make: bool) -> Result<(), StoreError> {
    let schema = &pool.options.schema;
    let look = async || {
        let deadline = pool.deadline();
        let connection = pool.acquire("open", deadline).await?;
        let found = timeout_at(deadline, version(connection.client(), schema)).await;
        connection.end("open", Effect::Read, found)
    };
    let mut found = look().await?;
    if found.is_none() && may_make {
        migrate(pool, MIGRATIONS, MigrateMode::Take)
            .await
            .map_err(|error| StoreError::new(StoreErrorKind::Unavailable, "open").with_source(error))?;
        found = look().await?;
    }
    Ok(check(found, schema)?)
}

#[cfg(test)]
mod tests;
