//! [`OnceIn`] on a transaction of sqlx: the same statements, with parameters and columns as tokio-postgres encodes them.
//! Both drivers use the binary format, so the bytes are the same.

use hapax_core::{Key, Scope};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgArgumentBuffer, PgConnection, PgRow, PgTypeInfo};
use sqlx::{AssertSqlSafe, Connection as _, Encode, Error, Postgres, Row, Transaction, ValueRef};
use tokio::sync::Mutex;
use tokio_postgres::types::{FromSql, Type};

use super::{Done, OnceIn, OnceInError, fault};
use crate::error::Fault;
use crate::executor::{Executor, Parameter, RowFields};
use crate::store::PostgresStore;

impl PostgresStore {
    /// Runs work once in a transaction of sqlx; otherwise as [`once_in`](Self::once_in).
    ///
    /// ```no_run
    /// use hapax_core::{Key, Scope};
    /// use hapax_store_postgres::PostgresStore;
    ///
    /// # async fn order(store: &PostgresStore, pool: &sqlx::PgPool) -> Result<i64, Box<dyn std::error::Error>> {
    /// let key = Key::new("order-4711")?;
    /// let mut tx = pool.begin().await?;
    /// let done = store
    ///     .once_in_sqlx(&mut tx, Scope::new("order"), &key)
    ///     .run(async |tx| {
    ///         let insert = "INSERT INTO purchase (item) VALUES ('book') RETURNING id";
    ///         sqlx::query_scalar::<_, i64>(insert).fetch_one(&mut **tx).await
    ///     })
    ///     .await?;
    /// tx.commit().await?;
    /// # Ok(done.value)
    /// # }
    /// ```
    pub fn once_in_sqlx<'t, 'c>(
        &'t self,
        tx: &'t mut Transaction<'c, Postgres>,
        scope: impl Into<Scope>,
        key: &Key,
    ) -> OnceIn<'t, Transaction<'c, Postgres>> {
        OnceIn::new(self, tx, scope.into(), key)
    }
}

impl OnceIn<'_, Transaction<'_, Postgres>> {
    /// Runs `work` in the transaction, or returns the result of an earlier transaction; the rules for transactions of
    /// tokio-postgres apply here as well.
    ///
    /// # Errors
    /// [`OnceInError`], with the same consequences.
    pub async fn run<T, E, W>(mut self, work: W) -> Result<Done<T>, OnceInError<E>>
    where
        T: Serialize + DeserializeOwned,
        W: AsyncFnOnce(&mut Transaction<'_, Postgres>) -> Result<T, E>,
    {
        self.operation.check()?;
        let operation = &self.operation;
        // If dropped, it rolls back to its savepoint before the connection is used again.
        let mut inner = self.tx.begin().await.map_err(|error| fault("claim", Fault::of_sqlx(&error)))?;
        let claimed = match operation.claim(&Shared::new(&mut inner)).await {
            Ok(claimed) => claimed,
            Err(unrun) => {
                let back = inner.rollback().await;
                let answer = operation.answer(unrun)?;
                return back.map(|()| answer).map_err(|error| fault("claim", Fault::of_sqlx(&error)));
            }
        };
        match work(&mut inner).await {
            Ok(value) => {
                operation.complete(&Shared::new(&mut inner), &claimed, &value).await?;
                inner.commit().await.map_err(|error| fault("complete", Fault::of_sqlx(&error)))?;
                Ok(Done { value, replayed: false })
            }
            Err(error) => {
                // If this fails, the connection is lost, and with it the transaction.
                let _ = inner.rollback().await;
                Err(OnceInError::Failed(error))
            }
        }
    }
}

/// A connection of sqlx, which runs statements in the order in which they are polled.
struct Shared<'c>(Mutex<&'c mut PgConnection>);

impl<'c> Shared<'c> {
    fn new(connection: &'c mut PgConnection) -> Self {
        Self(Mutex::new(connection))
    }
}

impl Executor for Shared<'_> {
    type Row = PgRow;
    type Error = Error;

    async fn fetch_rows(&self, statement: &str, parameters: &[Parameter<'_>]) -> Result<Vec<PgRow>, Error> {
        // The only external input is the schema's name, which was validated. Named statements would not survive a pooler in
        // transaction mode.
        let mut query = sqlx::query(AssertSqlSafe(statement)).persistent(false);
        for parameter in parameters {
            query.try_bind(Bytes::of(parameter).map_err(Error::Encode)?).map_err(Error::Encode)?;
        }
        let mut connection = self.0.lock().await;
        query.fetch_all(&mut **connection).await
    }

    fn classify_error(error: &Error) -> Fault {
        Fault::of_sqlx(error)
    }
}

impl RowFields for PgRow {
    type Error = Error;

    fn field<'a, T: FromSql<'a>>(&'a self, name: &str) -> Result<T, Error> {
        let value = self.try_get_raw(name)?;
        let kind = value.type_info().oid().and_then(|Oid(oid)| Type::from_oid(oid)).unwrap_or(Type::UNKNOWN);
        let wrong = |source| Error::ColumnDecode { index: name.to_owned(), source };
        if value.is_null() {
            return T::from_sql_null(&kind).map_err(wrong);
        }
        T::from_sql(&kind, value.as_bytes().map_err(wrong)?).map_err(wrong)
    }
}

/// An encoded parameter.
struct Bytes {
    kind: Type,
    /// None for NULL.
    bytes: Option<Vec<u8>>,
}

impl Bytes {
    fn of((value, kind): &Parameter<'_>) -> Result<Self, BoxDynError> {
        let mut bytes = bytes::BytesMut::new();
        let is_null = matches!(value.to_sql_checked(kind, &mut bytes)?, tokio_postgres::types::IsNull::Yes);
        Ok(Self { kind: kind.clone(), bytes: (!is_null).then(|| bytes.into()) })
    }
}

impl Encode<'_, Postgres> for Bytes {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        let Some(bytes) = &self.bytes else { return Ok(IsNull::Yes) };
        buffer.extend_from_slice(bytes);
        Ok(IsNull::No)
    }

    fn produces(&self) -> Option<PgTypeInfo> {
        Some(PgTypeInfo::with_oid(Oid(self.kind.oid())))
    }
}

impl sqlx::Type<Postgres> for Bytes {
    /// Every parameter carries its own type.
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(Oid(Type::UNKNOWN.oid()))
    }
}
