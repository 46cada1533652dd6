//! [`Tx`] as an axum extractor.

use std::error::Error;
use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use hapax::Context;
use hapax::http::Outcome;
use hapax::http::axum::NotProtected;
use hapax_core::{StoreError, StoreErrorKind};

use crate::handler_tx::Tx;
use crate::store::PostgresStore;

/// Why a handler got no transaction.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TxRejection {
    /// The request has no key, or no layer covers it. Answered as a missing key.
    #[error("{0}")]
    NotProtected(#[source] NotProtected),
    /// The store has no connection, answered with 503; or it is not the layer's own store, a configuration error answered
    /// with 500. Nothing has run, so the key is free again.
    #[error("the transaction could not be started")]
    Store(#[source] StoreError),
}

impl IntoResponse for TxRejection {
    fn into_response(self) -> Response {
        match self {
            Self::NotProtected(why) => why.into_response(),
            Self::Store(error) => {
                let is_wrong_store = error.kind() == StoreErrorKind::Invalid;
                if is_wrong_store {
                    tracing::error!(error = ?error.source(), "the handler got no transaction");
                }
                let mut response = if is_wrong_store {
                    StatusCode::INTERNAL_SERVER_ERROR.into_response()
                } else {
                    StatusCode::SERVICE_UNAVAILABLE.into_response()
                };
                // Overrides the route's classification of this status: nothing has run.
                response.extensions_mut().insert(Outcome::Release);
                response
            }
        }
    }
}

/// Begins the transaction of this request's attempt. The state must hold the same store value that the layer uses; with
/// another one the request is refused before the handler runs.
impl<S> FromRequestParts<S> for Tx
where
    S: Send + Sync,
    Arc<PostgresStore>: FromRef<S>,
{
    type Rejection = TxRejection;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, TxRejection> {
        let context = <Context as FromRequestParts<S>>::from_request_parts(parts, state).await;
        let context = context.map_err(TxRejection::NotProtected)?;
        let store = Arc::<PostgresStore>::from_ref(state);
        store.transaction_of(context.fence()).await.map_err(TxRejection::Store)
    }
}
