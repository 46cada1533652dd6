//! Migrations: the steps by which the tables came to be as they are, and the one transaction that takes those that are
//! missing.
//!
//! A step only adds, so that programs which know the tables as they were go on working while and after it is taken. One
//! that cannot keep to that says which programs may go on. An advisory lock that ends with the transaction keeps two
//! processes from taking the same step.

use hapax_core::{StoreError, StoreErrorKind};
use tokio::time::timeout_at;
use tokio_postgres::types::Type;
use tokio_postgres::{Error, GenericClient};

use crate::error::{Effect, Fault, OpenError};
use crate::link::Link;
use crate::sql;

/// The version of the tables that this crate makes and needs.
pub const VERSION: i32 = 1;

/// "hapax" and a little, for the advisory lock: other programs have other numbers.
const LOCK: i32 = 0x6861_7078;

/// Which steps were taken, and the oldest programs that may use the tables since.
const LEDGER: &str = "CREATE TABLE IF NOT EXISTS SCHEMA.migration (\
    version integer PRIMARY KEY, name text NOT NULL, oldest_program integer NOT NULL, \
    taken_at timestamptz NOT NULL DEFAULT clock_timestamp())";

/// One step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Migration {
    pub(crate) version: i32,
    pub(crate) name: &'static str,
    /// The oldest version of this crate's tables whose programs may go on after it.
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
    /// The names of the steps between.
    pub steps: Vec<&'static str>,
}

/// Whether anything is changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MigrateMode {
    /// The steps are taken.
    Take,
    /// They are taken and taken back, so that it is known that they can be.
    DryRun,
}

/// The version of the tables, and the oldest program that may use them; `None` when there are none.
pub(crate) async fn version<C: GenericClient + Sync>(
    client: &C,
    schema: &str,
) -> Result<Option<(i32, i32)>, Error> {
    // Not by to_regclass: that may remember, from before the lock was waited for, that there is none.
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

/// Refuses tables that this program cannot use.
pub(crate) fn check(found: Option<(i32, i32)>, schema: &str) -> Result<(), OpenError> {
    match found {
        None => Err(OpenError::Missing { schema: schema.to_owned() }),
        Some((found, _)) if found < VERSION => Err(OpenError::Outdated { found }),
        // Somebody newer has migrated, and says that we may go on.
        Some((_, oldest_program)) if oldest_program <= VERSION => Ok(()),
        Some((found, _)) => Err(OpenError::TooNew { found }),
    }
}

/// Takes the steps of `known` that are missing, all or none of them.
pub(crate) async fn migrate(
    link: &Link,
    known: &'static [Migration],
    mode: MigrateMode,
) -> Result<Migrated, StoreError> {
    const OP: &str = "migrate";
    let deadline = link.long_deadline();
    let mut lent = link.lend(OP, deadline).await?;
    let schema = &link.options.schema;
    let migrating = async {
        let transaction = lent.client_mut().transaction().await?;
        let lock = "SELECT pg_advisory_xact_lock($1, hashtext($2))";
        transaction.query_typed(lock, &[(&LOCK, Type::INT4), (schema, Type::TEXT)]).await?;
        let from = version(&transaction, schema).await?.map(|(found, _)| found);
        let missing: Vec<&Migration> =
            known.iter().filter(|step| from.is_none_or(|found| step.version > found)).collect();
        if !missing.is_empty() {
            // Who may not make schemas may still be given one.
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
    // After a failure the connection is closed, for it may be inside of what failed.
    match migrated {
        Ok(Err(error)) => Err(Fault::of(&error).error(OP, Effect::Write)),
        ended => lent.end(OP, Effect::Write, ended),
    }
}

/// Looks whether the tables are there, and makes them where they are not and somebody wants that.
pub(crate) async fn ensure(link: &Link, may_make: bool) -> Result<(), StoreError> {
    let schema = &link.options.schema;
    let look = async || {
        let deadline = link.deadline();
        let lent = link.lend("open", deadline).await?;
        let found = timeout_at(deadline, version(lent.client(), schema)).await;
        lent.end("open", Effect::Read, found)
    };
    let mut found = look().await?;
    if found.is_none() && may_make {
        migrate(link, MIGRATIONS, MigrateMode::Take)
            .await
            .map_err(|error| StoreError::new(StoreErrorKind::Unavailable, "open").with_source(error))?;
        found = look().await?;
    }
    Ok(check(found, schema)?)
}

#[cfg(test)]
mod tests;
