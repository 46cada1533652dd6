//! Health checks of several addresses, and the closing of idle connections.
//!
//! Each task ends when its address is dropped. Responses to requests are no sign of health: a failing handler is not a
//! machine that is down.

use std::sync::Weak;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::Request;
use tokio::time::{sleep, timeout};

use super::connection::UpstreamConnection;
use super::{OutgoingBody, RequiredVersion, UpstreamAddress, UpstreamOptions};

/// The shortest interval of a task.
const INTERVAL_MIN: Duration = Duration::from_millis(10);

/// What is checked, and how often.
#[derive(Clone, Debug)]
pub(super) struct HealthCheck {
    interval: Duration,
    timeout: Duration,
    path: Option<String>,
}

impl HealthCheck {
    pub(super) fn new(options: &UpstreamOptions) -> Self {
        Self {
            interval: options.health_interval.max(INTERVAL_MIN),
            timeout: options.health_timeout,
            path: options.health_path.clone(),
        }
    }
}

/// Checks an address periodically until it is dropped.
pub(super) async fn watch(address: Weak<UpstreamAddress>, check: HealthCheck) {
    loop {
        let Some(checked) = address.upgrade() else { return };
        let is_up = timeout(check.timeout, probe(&checked, check.path.as_deref())).await.unwrap_or(false);
        if checked.is_up.swap(is_up, Ordering::Relaxed) != is_up {
            tracing::warn!(upstream = %checked.target.authority(), is_up, "upstream health changed");
        }
        drop(checked);
        sleep(check.interval).await;
    }
}

async fn probe(address: &UpstreamAddress, path: Option<&str>) -> bool {
    let Some(path) = path else { return address.target.open().await.is_ok() };
    let Ok(request) = Request::get(path).body(OutgoingBody::empty()) else { return false };
    let mut request = Box::new(request);
    let response = match address.target.connect(RequiredVersion::Any).await {
        Err(_) => return false,
        Ok(UpstreamConnection::Http1(mut connection)) => {
            address.target.prepare_http1(&mut request);
            connection.send(request, address.response).await
        }
        Ok(UpstreamConnection::Http2(mut connection)) => {
            address.target.prepare_http2(&mut request);
            connection.send(request, address.response).await
        }
    };
    response.is_ok_and(|response| !response.status().is_server_error())
}

/// Closes connections that were idle for too long.
pub(super) async fn close_idle(address: Weak<UpstreamAddress>) {
    loop {
        let Some(kept) = address.upgrade() else { return };
        kept.close_idle();
        let interval = (kept.keep_alive / 2).max(INTERVAL_MIN);
        drop(kept);
        sleep(interval).await;
    }
}
