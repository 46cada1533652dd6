//! Which of several addresses can be reached, and the end of connections that nobody uses.
//!
//! Each task ends when its address is gone. What an upstream answers to requests is no sign of its health: a handler
//! that fails is not a machine that is down.

use std::sync::Weak;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::Request;
use http::header::HOST;
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::time::{sleep, timeout};

use super::{Address, UpstreamOptions};

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
    let Ok(stream) = address.target.open().await else { return false };
    let Some(path) = path else { return true };
    let Ok((mut sender, connection)) = http1::handshake(TokioIo::new(stream)).await else { return false };
    let request = Request::get(path).header(HOST, address.target.authority().as_str());
    let Ok(request) = request.body(Empty::<bytes::Bytes>::new()) else { return false };
    let asked =
        async { sender.send_request(request).await.is_ok_and(|answer| !answer.status().is_server_error()) };
    tokio::select! {
        is_well = asked => is_well,
        _ended = connection => false,
    }
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
