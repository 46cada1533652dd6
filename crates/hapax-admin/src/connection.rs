//! Connections of the admin listener, with timeouts and graceful shutdown. `connection_slots.rs` limits their number.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::IntoResponse as _;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_service::Service as _;

use super::auth::Peer;
use super::connection_slots::{ConnectionSlot, ConnectionSlots, RequestBody, Stage};
use super::options::AdminOptions;
use super::router::is_probe;
use crate::failure::{Code, Failure};

/// The pause after a failed accept, such as for a lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The largest head of a request.
const HEAD_BYTES_MAX: usize = 32 * 1024;

/// How long a response may take to be sent during shutdown.
const LAST_RESPONSE_TIME: Duration = Duration::from_secs(1);

/// Serves until `stop`, then finishes the requests in progress.
pub(super) async fn serve(
    listener: TcpListener,
    router: Router,
    options: &AdminOptions,
    stop: CancellationToken,
) {
    let slots = ConnectionSlots::new(options.connections_max);
    let connections = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                let Some(occupied) = slots.acquire() else {
                    tracing::warn!(
                        "the admin listener refused a connection: all others have a request in progress"
                    );
                    continue;
                };
                let slot = Arc::clone(&occupied.slot);
                let serving =
                    connection(stream, peer, slot, router.clone(), options.header_time.0, stop.clone());
                connections.spawn(async move {
                    tokio::select! {
                        biased;
                        () = occupied.slot.evicted() => {
                            tracing::debug!("the admin listener closed an idle connection for a new one");
                        }
                        () = serving => {}
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "the admin listener cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    connections.close();
    connections.wait().await;
}

async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    slot: Arc<ConnectionSlot>,
    router: Router,
    header_time: Duration,
    stop: CancellationToken,
) {
    let request_slot = Arc::clone(&slot);
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let slot = Arc::clone(&request_slot);
        let mut request = request.map(|body| Body::new(RequestBody::new(body, &slot)));
        request.extensions_mut().insert(Peer(peer));
        let mut router = router.clone();
        async move {
            let response = if slot.is_probe_only() && !is_probe(request.uri().path()) {
                full().into_response()
            } else {
                router.call(request).await.unwrap_or_else(|never| match never {})
            };
            slot.enter(Stage::Responded);
            Ok::<_, Infallible>(response)
        }
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
            // No request has begun. Browsers also open connections in advance.
            if slot.stage() == Stage::Receiving {
                return;
            }
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                ended = connection => ended,
                () = slot.responded_for(LAST_RESPONSE_TIME) => return,
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection of the admin listener failed");
    }
}

fn full() -> Failure {
    Failure::new(
        Code::Overloaded,
        "all connections of this listener are in use, and this one is reserved for probes",
    )
    .hint("try again in a moment; `admin.connections_max` limits the connections")
}
