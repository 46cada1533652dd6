//! Connections of the admin listener: how many, how long, and how they end.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_service::Service as _;

use super::AdminOptions;
use super::auth::Peer;

/// How long to wait after the system could not give a connection: it is short of something that others give back.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The largest head of a request. Nothing here needs more.
const HEAD_BYTES_MAX: usize = 32 * 1024;

/// Serves until `stop`, then lets requests finish that have begun.
pub(super) async fn serve(
    listener: TcpListener,
    router: Router,
    options: &AdminOptions,
    stop: CancellationToken,
) {
    let places = Arc::new(Semaphore::new(options.connections_max.min(Semaphore::MAX_PERMITS)));
    let connections = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = next(&listener, &places) => accepted,
        };
        match accepted {
            Ok((stream, peer, place)) => {
                let serving = connection(stream, peer, router.clone(), options.header_time.0, stop.clone());
                connections.spawn(async move {
                    serving.await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "the admin listener could not take a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    connections.close();
    connections.wait().await;
}

/// The next connection, once there is a place for it.
async fn next(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> std::io::Result<(TcpStream, SocketAddr, tokio::sync::OwnedSemaphorePermit)> {
    let place = places.clone().acquire_owned().await.map_err(std::io::Error::other)?;
    let (stream, peer) = listener.accept().await?;
    Ok((stream, peer, place))
}

async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    header_time: Duration,
    stop: CancellationToken,
) {
    let has_begun = Arc::new(AtomicBool::new(false));
    let begun = has_begun.clone();
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        begun.store(true, Ordering::Relaxed);
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(Peer(peer));
        let mut router = router.clone();
        async move { Ok::<_, Infallible>(router.call(request).await.unwrap_or_else(|never| match never {})) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(header_time)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            // Browsers open connections before they need them; such a one would be waited for in vain.
            if !has_begun.load(Ordering::Relaxed) {
                return;
            }
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection of the admin listener ended early");
    }
}
