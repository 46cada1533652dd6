//! [`Delivery`]: exports batches of spans over the process's own HTTP client. Batches come from a thread outside of the
//! runtime in which the client runs.
//!
//! Failures and recoveries are logged once each, and all batches are counted.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http_body_util::Full;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use tokio::runtime::Handle;

use crate::http_client::{HttpClient as Client, PoolOptions, RequestLimits};
use crate::telemetry::TRACE_BATCHES;

/// The error message of a collector is short.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Batches are exported one at a time, so one connection is enough.
const POOL: PoolOptions = PoolOptions { idle_max: 1, idle_timeout: Duration::from_secs(30) };

#[derive(Debug)]
pub(super) struct Delivery {
    runtime: Handle,
    client: Client,
    limits: RequestLimits,
    is_accepting: AtomicBool,
}

impl Delivery {
    pub(super) fn new(within: Duration) -> Self {
        Self {
            runtime: Handle::current(),
            client: Client::new(POOL),
            limits: RequestLimits { timeout: within, body_bytes_max: ANSWER_BYTES_MAX },
            is_accepting: AtomicBool::new(true),
        }
    }

    fn delivered(&self) {
        metrics::counter!(TRACE_BATCHES, "result" => "delivered").increment(1);
        if !self.is_accepting.swap(true, Ordering::Relaxed) {
            tracing::info!("the collector accepts traces again");
        }
    }

    fn lost(&self, why: &dyn std::fmt::Display) {
        metrics::counter!(TRACE_BATCHES, "result" => "lost").increment(1);
        if self.is_accepting.swap(false, Ordering::Relaxed) {
            tracing::warn!("the collector does not accept traces, which are dropped until it does: {why}");
        }
    }
}

#[async_trait::async_trait]
impl HttpClient for Delivery {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (client, limits) = (self.client.clone(), self.limits);
        let sent = async move { client.send(request.map(Full::new), limits).await };
        match self.runtime.spawn(sent).await? {
            Ok(response) => {
                if response.status().is_success() {
                    self.delivered();
                } else {
                    self.lost(&format_args!("it responds with {}", response.status()));
                }
                Ok(response)
            }
            Err(error) => {
                self.lost(&error);
                Err(error.into())
            }
        }
    }
}
