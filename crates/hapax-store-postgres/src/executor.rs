//! [`Executor`]: runs statements on a pooled connection or in a caller's transaction, with either driver.
//!
//! It knows parameters and columns as tokio-postgres encodes them, and no statement.

use std::future::Future;

use tokio_postgres::types::{FromSql, ToSql, Type};
use tokio_postgres::{Error, GenericClient, Row};

use crate::error::Fault;

/// A value and its type.
pub(crate) type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// Runs a statement and returns its rows.
pub(crate) trait Executor: Sync {
    type Row: RowFields<Error = Self::Error> + Send + Sync;
    type Error: Send + Sync;

    /// Sends a statement. Statements arrive in the order in which their futures are polled.
    fn fetch_rows(
        &self,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> impl Future<Output = Result<Vec<Self::Row>, Self::Error>> + Send;

    /// Classifies a driver's error.
    fn classify_error(error: &Self::Error) -> Fault;
}

/// The columns of a row.
pub(crate) trait RowFields {
    type Error;

    /// The value of a column.
    fn field<'a, T: FromSql<'a>>(&'a self, name: &str) -> Result<T, Self::Error>;
}

impl<C: GenericClient + Sync> Executor for C {
    type Row = Row;
    type Error = Error;

    async fn fetch_rows(&self, statement: &str, parameters: &[Parameter<'_>]) -> Result<Vec<Row>, Error> {
        self.query_typed(statement, parameters).await
    }

    fn classify_error(error: &Error) -> Fault {
        Fault::of(error)
    }
}

impl RowFields for Row {
    type Error = Error;

    fn field<'a, T: FromSql<'a>>(&'a self, name: &str) -> Result<T, Error> {
        self.try_get(name)
    }
}
