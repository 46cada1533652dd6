//! [`Listener`]: accepts connections within limits, and drains them on shutdown.
//!
//! It does not know what is spoken on a connection: that is `connection.rs`.

mod connection_limits;

use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_service::Service;

use self::connection_limits::ConnectionLimits;
use crate::connection::ConnectionServer;
use crate::error::SetupError;
use crate::fields::ReservedFields;
use crate::options::{ListenerOptions, TlsFiles};
use crate::refusals::{EmptyResponses, RefusalResponses};
use crate::request_body::ClientBody;
use crate::tls::Certificate;
use crate::workers::Workers;

/// The pause after a failed accept: the process may be out of file descriptors, and an immediate retry fails again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A bound address that accepts the connections of clients.
#[derive(Debug)]
pub struct Listener {
    /// Taken by [`serve`](Self::serve), which closes it.
    socket: Mutex<Option<TcpListener>>,
    address: SocketAddr,
    settings: ListenerSettings,
    limits: Arc<ConnectionLimits>,
}

/// What the connections of a listener are served with.
#[derive(Clone, Debug)]
pub(crate) struct ListenerSettings {
    pub(crate) options: ListenerOptions,
    pub(crate) certificate: Option<Arc<Certificate>>,
    pub(crate) reserved: ReservedFields,
    pub(crate) responses: Arc<dyn RefusalResponses>,
}

impl Listener {
    /// Binds the address. Connections are accepted by [`serve`](Self::serve).
    ///
    /// # Errors
    /// [`SetupError`] when the address or the certificate cannot be used.
    pub async fn bind(
        address: SocketAddr,
        options: &ListenerOptions,
        tls: Option<&TlsFiles>,
    ) -> Result<Self, SetupError> {
        let certificate = tls.map(|tls| Certificate::read(tls, options.http2)).transpose()?.map(Arc::new);
        let failed = |source| SetupError::Listen { address, source };
        let socket = TcpListener::bind(address).await.map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        let limits = ConnectionLimits::new(options.connections_max, options.connections_per_peer_max);
        let settings = ListenerSettings {
            options: options.clone(),
            certificate,
            reserved: ReservedFields::default(),
            responses: Arc::new(EmptyResponses),
        };
        Ok(Self { socket: Mutex::new(Some(socket)), address, settings, limits })
    }

    /// Fields that requests must not carry when they come from clients. Default: the proxy's own fields only.
    #[must_use]
    pub fn reserved_fields(mut self, fields: ReservedFields) -> Self {
        self.settings.reserved = fields;
        self
    }

    /// What clients get for requests that are refused before the service sees them. Default: [`EmptyResponses`].
    #[must_use]
    pub fn refusal_responses(mut self, responses: impl RefusalResponses) -> Self {
        self.settings.responses = Arc::new(responses);
        self
    }

    /// The bound address; with the actual port when port 0 was requested.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Reads certificate and key again, for new connections. On an error the old ones stay. Without TLS it does nothing.
    ///
    /// # Errors
    /// [`SetupError`] when the files cannot be used.
    pub fn reload_tls(&self) -> Result<(), SetupError> {
        self.settings.certificate.as_ref().map_or(Ok(()), |certificate| certificate.reload())
    }

    /// Serves until `shutdown` is cancelled, then closes the socket, lets connections finish their requests and returns
    /// when the last one has ended. A second call returns immediately.
    ///
    /// Every connection gets a clone of the service, whose `poll_ready` must not wait: concurrent streams of an HTTP/2
    /// connection call it in turn.
    pub async fn serve<S, B>(&self, service: S, workers: Workers, shutdown: CancellationToken)
    where
        S: Service<Request<ClientBody>, Response = Response<B>, Error = Infallible>
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send + 'static,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let Some(socket) = self.socket.lock().take() else { return };
        let server = Arc::new(ConnectionServer::new(self.settings.clone(), service, workers.clone()));
        let connections = TaskTracker::new();
        loop {
            let accepted = tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                accepted = socket.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => {
                    let Some(permit) = self.limits.try_acquire(peer.ip()) else {
                        tracing::debug!("closed a new connection: connection limit reached");
                        continue;
                    };
                    // The worker that serves it registers it with its own runtime.
                    let Ok(stream) = stream.into_std() else { continue };
                    let (server, shutdown) = (server.clone(), shutdown.child_token());
                    let served = async move {
                        let _permit = permit;
                        match register(stream) {
                            Ok(stream) => server.serve(stream, peer, shutdown).await,
                            Err(error) => {
                                tracing::warn!(%error, "cannot register a connection with the runtime")
                            }
                        }
                    };
                    workers.spawn(connections.track_future(served));
                }
                // The client has disconnected before it was accepted.
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        // The system would keep accepting connections that are never served.
        drop(socket);
        connections.close();
        connections.wait().await;
    }
}

impl TlsFiles {
    /// Checks that the certificate and its key can be read and match.
    ///
    /// # Errors
    /// [`SetupError`] when they do not.
    pub fn check(&self) -> Result<(), SetupError> {
        Certificate::read(self, true).map(drop)
    }
}

/// Registers a socket with the current runtime.
fn register(stream: std::net::TcpStream) -> io::Result<TcpStream> {
    // Responses are written as a whole; Nagle's algorithm only delays them.
    let _unsupported = stream.set_nodelay(true);
    TcpStream::from_std(stream)
}

fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
