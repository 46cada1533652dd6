//! [`Connection`]: what statements are sent on. A connection of the store, or the transaction of somebody else, whichever
//! driver it belongs to.
//!
//! It knows parameters and columns as this crate's own driver encodes them, and no statement.

use std::future::Future;

use tokio_postgres::types::{FromSql, ToSql, Type};
use tokio_postgres::{Error, GenericClient, Row};

use crate::error::Fault;

/// A value and what the server is told that it is.
pub(crate) type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// Takes a statement and gives its rows.
pub(crate) trait Connection: Sync {
    type Row: Fields<Error = Self::Error> + Send + Sync;
    type Error: Send + Sync;

    /// Sends a statement. Those that are polled in an order arrive in that order.
    fn ask(
        &self,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> impl Future<Output = Result<Vec<Self::Row>, Self::Error>> + Send;

    /// What a driver's error means.
    fn fault(error: &Self::Error) -> Fault;
}

/// The columns of a row.
pub(crate) trait Fields {
    type Error;

    /// The value in the column of this name.
    fn field<'a, T: FromSql<'a>>(&'a self, name: &str) -> Result<T, Self::Error>;
}

impl<C: GenericClient + Sync> Connection for C {
    type Row = Row;
    type Error = Error;

    async fn ask(&self, statement: &str, parameters: &[Parameter<'_>]) -> Result<Vec<Row>, Error> {
        self.query_typed(statement, parameters).await
    }

    fn fault(error: &Error) -> Fault {
        Fault::of(error)
    }
}

impl Fields for Row {
    type Error = Error;

    fn field<'a, T: FromSql<'a>>(&'a self, name: &str) -> Result<T, Error> {
        self.try_get(name)
    }
}
