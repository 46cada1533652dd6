//! The simplest listener for operators.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hapax::Hapax;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use metrics_exporter_prometheus::PrometheusHandle;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tower_service::Service;

use crate::config::sections::AdminOptions;
use crate::failure::{Code, Failure};
use crate::proxy::{Listener, Received, Transport};

/// What operators are shown.
#[derive(Clone)]
pub(super) struct Admin {
    pub(super) hapax: Hapax,
    pub(super) metrics: PrometheusHandle,
    pub(super) config: Arc<dyn Fn() -> Value + Send + Sync>,
    pub(super) ready: Arc<dyn Fn() -> bool + Send + Sync>,
    pub(super) data_dir: Option<PathBuf>,
    pub(super) options: AdminOptions,
}

impl Admin {
    pub(super) async fn bind(options: &AdminOptions) -> Result<Option<AdminListener>, Failure> {
        if options.listen == "off" {
            return Ok(None);
        }
        let address = options.listen.parse().map_err(|_| {
            Failure::new(Code::ConfigInvalid, format!("{:?} is no address for operators", options.listen))
        })?;
        let listener = Listener::bind(address, &Transport::default(), None).await?;
        Ok(Some(AdminListener { listener }))
    }

    async fn answer(self, request: Request<Received>) -> Result<Response<Full<Bytes>>, Infallible> {
        let (status, words) = match request.uri().path() {
            "/healthz" => (StatusCode::OK, "ok\n".to_owned()),
            "/readyz" if (self.ready)() && self.hapax.store().health().await.is_ok() => {
                (StatusCode::OK, "ready\n".to_owned())
            }
            "/readyz" => (StatusCode::SERVICE_UNAVAILABLE, "not ready\n".to_owned()),
            "/metrics" => (StatusCode::OK, self.metrics.render()),
            "/api/v1/config" => (StatusCode::OK, (self.config)().to_string()),
            _ => (StatusCode::NOT_FOUND, format!("{} {:?}\n", self.options.listen, self.data_dir)),
        };
        let mut response = Response::new(words.into());
        *response.status_mut() = status;
        Ok(response)
    }
}

/// Bound, not yet serving.
#[derive(Debug)]
pub(super) struct AdminListener {
    listener: Listener,
}

impl AdminListener {
    pub(super) fn local_addr(&self) -> SocketAddr {
        self.listener.local_addr()
    }

    /// The token, where it was made here.
    pub(super) fn made_token(&self) -> Option<String> {
        None
    }

    pub(super) async fn serve(self, admin: Admin, stop: CancellationToken) {
        self.listener.serve(move || Operators(admin.clone()), stop).await;
    }
}

struct Operators(Admin);

impl Service<Request<Received>> for Operators {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Received>) -> Self::Future {
        Box::pin(self.0.clone().answer(request))
    }
}
