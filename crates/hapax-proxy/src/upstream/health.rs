//! Which of several addresses can be reached, and the end of connections that nobody uses.
//!
//! Each task ends when its address is gone. What an upstream answers to requests is no sign of its health: a handler
//! that fails is not a machine that is down.

use std::sync::Weak;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::Request;
use tokio::time::{sleep, timeout};

use super::link::Link;
use super::{Address, Needs, Outgoing, UpstreamOptions};

/// No task wakes more often: what it looks for does not change faster.
const INTERVAL_MIN: Duration = Duration::from_millis(10);

/// What is checked, and how often.
#[derive(Clone, Debug)]
pub(super) struct Check {
    interval: Duration,
    timeout: Duration,
    path: Option<String>,
}

impl Check {
    pub(super) fn new(options: &UpstreamOptions) -> Self {
        Self {
            interval: options.health_interval.0.max(INTERVAL_MIN),
            timeout: options.health_timeout.0,
            path: options.health_path.clone(),
        }
    }
}

/// Checks an address for as long as somebody may send to it.
pub(super) async fn watch(address: Weak<Address>, check: Check) {
    loop {
        let Some(checked) = address.upgrade() else { return };
        let is_up = timeout(check.timeout, is_up(&checked, check.path.as_deref())).await.unwrap_or(false);
        if checked.is_up.swap(is_up, Ordering::Relaxed) != is_up {
            tracing::warn!(upstream = %checked.target.authority(), is_up, "the health of an upstream changed");
        }
        drop(checked);
        sleep(check.interval).await;
    }
}

async fn is_up(address: &Address, path: Option<&str>) -> bool {
    let Some(path) = path else { return address.target.open().await.is_ok() };
    let Ok(request) = Request::get(path).body(Outgoing::nothing()) else { return false };
    let mut request = Box::new(request);
    let answer = match address.target.connect(Needs::Any).await {
        Err(_) => return false,
        Ok(Link::Http1(mut link)) => {
            address.target.address_http1(&mut request);
            link.send(request, address.response).await
        }
        Ok(Link::Http2(mut link)) => {
            address.target.address_http2(&mut request);
            link.send(request, address.response).await
        }
    };
    answer.is_ok_and(|answer| !answer.status().is_server_error())
}

/// Closes connections that were not used for long.
pub(super) async fn forget_unused(address: Weak<Address>) {
    loop {
        let Some(kept) = address.upgrade() else { return };
        kept.forget_unused();
        let interval = (kept.keep_alive / 2).max(INTERVAL_MIN);
        drop(kept);
        sleep(interval).await;
    }
}
