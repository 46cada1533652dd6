//! [`Listener`]: takes connections, within caps, and lets them end well when it is told to stop.
//!
//! It does not know what is spoken on a connection: that is `connection.rs`.

mod caps;

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

use self::caps::Caps;
use super::connection::Serving;
use super::options::{Tls, Transport};
use super::received::Received;
use super::tls::Certificate;
use super::workers::Workers;
use crate::failure::{Code, Failure};

/// How long to wait after a connection could not be taken: there may be no room for another file, and asking again
/// at once changes nothing.
const PAUSE: Duration = Duration::from_millis(50);

/// An address that connections are taken at.
#[derive(Debug)]
pub(crate) struct Listener {
    /// Gone once it serves: whoever serves closes it.
    socket: Mutex<Option<TcpListener>>,
    address: SocketAddr,
    transport: Transport,
    certificate: Option<Arc<Certificate>>,
    caps: Arc<Caps>,
}

impl Listener {
    /// Takes the address. Nobody is served before [`serve`](Self::serve).
    pub(crate) async fn bind(
        address: SocketAddr,
        transport: &Transport,
        tls: Option<&Tls>,
    ) -> Result<Self, Failure> {
        let certificate = tls.map(|tls| Certificate::read(tls, transport.http2)).transpose()?.map(Arc::new);
        let failed = |error| {
            Failure::new(Code::ListenFailed, format!("cannot listen at {address}"))
                .because(error)
                .hint("choose an address of this machine that nobody listens at")
        };
        let socket = TcpListener::bind(address).await.map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        let caps = Caps::new(transport.connections_max, transport.connections_per_peer_max);
        let socket = Mutex::new(Some(socket));
        Ok(Self { socket, address, transport: transport.clone(), certificate, caps })
    }

    /// Whether a certificate and its key can be read and go together.
    pub(crate) fn check(tls: &Tls) -> Result<(), Failure> {
        Certificate::read(tls, true).map(drop)
    }

    /// Where it listens; with the port that was found when none was asked for.
    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Reads the certificate again, for new connections. Those that are open keep theirs.
    pub(crate) fn reload_tls(&self) -> Result<(), Failure> {
        self.certificate.as_ref().map_or(Ok(()), |certificate| certificate.reload())
    }

    /// Serves until `stop`, then gives the address up, lets connections finish what they began and returns when the
    /// last one has. Whoever asks a second time has nothing to serve.
    ///
    /// Every connection has a clone of the service.
    pub(crate) async fn serve<S, B>(&self, service: S, workers: Workers, stop: CancellationToken)
    where
        S: Service<Request<Received>, Response = Response<B>, Error = Infallible>
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send + 'static,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let Some(socket) = self.socket.lock().take() else { return };
        let serving = Serving::new(&self.transport, self.certificate.clone(), service, workers.clone());
        let serving = Arc::new(serving);
        let connections = TaskTracker::new();
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                accepted = socket.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => {
                    let Some(place) = self.caps.take(peer.ip()) else {
                        tracing::debug!("turned a connection away: there are too many");
                        continue;
                    };
                    // The worker that serves it registers it with its own runtime.
                    let Ok(stream) = stream.into_std() else { continue };
                    let (serving, stop) = (serving.clone(), stop.child_token());
                    let served = async move {
                        let _place = place;
                        match register(stream) {
                            Ok(stream) => serving.serve(stream, peer, stop).await,
                            Err(error) => {
                                tracing::warn!(%error, "cannot register a connection with the runtime")
                            }
                        }
                    };
                    workers.spawn(connections.track_future(served));
                }
                // The client has gone again; the next one may be there.
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot take a connection");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
        // The system would go on taking connections that nobody answers.
        drop(socket);
        connections.close();
        connections.wait().await;
    }
}

/// Registers a socket with the runtime that this is called in.
fn register(stream: std::net::TcpStream) -> io::Result<TcpStream> {
    // Answers are written as a whole; waiting for more to send only delays them.
    let _unsupported = stream.set_nodelay(true);
    TcpStream::from_std(stream)
}

fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
