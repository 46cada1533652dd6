//! Serves an axum router in this process, on a thread with its own runtime.

use std::net::Ipv4Addr;

use anyhow::{Context as _, Result};
use axum::Router;
use tokio::net::TcpListener;

/// A listener on a free port of the loopback address, for [`serve_on_thread`].
pub(crate) fn listener() -> Result<std::net::TcpListener> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port")?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Serves what `app` makes, on a thread with its own runtime, until the process ends.
pub(crate) fn serve_on_thread(
    name: &str,
    listener: std::net::TcpListener,
    app: impl FnOnce() -> Router + Send + 'static,
) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        runtime.block_on(async {
            let listener = TcpListener::from_std(listener).expect("the socket does not block");
            axum::serve(listener, app()).await.expect("it serves until the process ends");
        });
    })?;
    Ok(())
}
