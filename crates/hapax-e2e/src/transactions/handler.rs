//! [`Shop`]: the HTTP layer around a handler that takes the transaction of its request.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Path;
use axum::http::{Request, StatusCode};
use axum::routing::post;
use hapax::http::{HttpPolicy, IdempotencyLayer};
use hapax::{Hapax, OnLapse, Policy};
use hapax_store_postgres::{PostgresStore, Tx};
use tower_service::Service as _;

use super::orders::{connect, insert};

/// An answer is a number.
const ANSWER_BYTES_MAX: usize = 64;

/// Short, so that a retry soon takes over from a process that was killed.
const LEASE: Duration = Duration::from_secs(1);

/// Takes orders.
pub(super) struct Shop {
    app: Router,
}

impl Shop {
    /// A shop on this store. With `apart`, the effect is written on another connection to that URL.
    pub(super) fn new(store: &Arc<PostgresStore>, apart: Option<String>) -> Self {
        let hapax = Hapax::builder(store.clone()).build();
        let engine = Policy::default().on_lapse(OnLapse::Rerun).lease(LEASE).attempts_max(u32::MAX);
        let handler = move |Path(name): Path<String>, tx: Tx| order(apart, name, tx);
        let app = Router::new()
            .route("/orders/{name}", post(handler))
            .with_state(store.clone())
            .layer(IdempotencyLayer::new(&hapax).policy(HttpPolicy::default().engine(engine)));
        Self { app }
    }

    /// The number of the effect; none when the request must be retried.
    pub(super) async fn order(&self, name: &str) -> Result<Option<i64>> {
        let request = Request::post(format!("/orders/{name}")).header("Idempotency-Key", name);
        let response = self.app.clone().call(request.body(Body::empty())?).await?;
        let is_recorded =
            response.headers().get("idempotency-recorded").is_none_or(|recorded| recorded != "false");
        match response.status() {
            StatusCode::OK if is_recorded => {
                let body = to_bytes(response.into_body(), ANSWER_BYTES_MAX).await?;
                let number = std::str::from_utf8(&body).ok().and_then(|text| text.parse().ok());
                Ok(Some(number.context("an order is answered with a number")?))
            }
            StatusCode::OK | StatusCode::CONFLICT => Ok(None),
            status if status.is_server_error() => Ok(None),
            status => bail!("an order was answered with {status}"),
        }
    }
}

async fn order(apart: Option<String>, name: String, tx: Tx) -> Result<String, StatusCode> {
    let inserted = match &apart {
        Some(url) => {
            let aside = connect(url).await.ok_or(StatusCode::SERVICE_UNAVAILABLE)?;
            aside.query_typed_one(&insert(&name), &[]).await
        }
        None => tx.query_typed_one(&insert(&name), &[]).await,
    };
    let number = inserted.and_then(|row| row.try_get::<_, i64>(0));
    number.map(|number| number.to_string()).map_err(|_| StatusCode::SERVICE_UNAVAILABLE)
}
